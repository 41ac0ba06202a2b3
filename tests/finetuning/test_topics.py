"""Topics of training queries: clusters of their vectors, the same again, and batches of one topic."""

import numpy as np
from tiny_training import data_of, stage

from cdmae.finetuning import topics
from cdmae.models import checkpoint


def test_clusters_are_the_groups_of_near_vectors_and_the_same_again():
    generator = np.random.default_rng(3)
    centres = 10 * np.eye(4, 6, dtype=np.float32)
    group = generator.integers(4, size=200)
    vectors = centres[group] + generator.normal(scale=0.1, size=(200, 6)).astype(np.float32)
    found = topics.clusters(vectors, 4, seed=2**40)
    assert found.dtype == np.int64
    # each group is a cluster
    assert len(set(zip(group.tolist(), found.tolist(), strict=True))) == 4
    assert (topics.clusters(vectors, 4, seed=2**40) == found).all()


def test_topics_follow_from_the_initial_weights(tiny):
    recipe = stage("retriever", topics=3)
    model = checkpoint.start_model(tiny.encoder, "retriever", **recipe.model())
    data = data_of(tiny, recipe, model)
    assert data.examples.topics.shape == (len(data.examples),)
    assert set(data.examples.topics.tolist()) == {0, 1, 2}
    again = data_of(tiny, recipe, model)
    assert (again.examples.topics == data.examples.topics).all()
