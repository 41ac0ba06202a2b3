"""Losses of prefixes: equal to sentence-transformers' MatryoshkaLoss."""

import dataclasses

import numpy as np
import pytest
import torch
from tiny_models import padded
from tiny_training import encoder, learn, prepared, same, stage, task_of

from cdmae.errors import InputError
from cdmae.finetuning import losses
from cdmae.finetuning.objectives import Objective
from cdmae.models import checkpoint

HOW = {"query_length": 32, "temperature": 0.05, "similarity": "cosine", "prefixes": (16, 5)}


def test_loss_and_gradient_equal_those_of_sentence_transformers(tiny, tmp_path):
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.losses import (
        MatryoshkaLoss,
        MultipleNegativesRankingLoss,
    )

    folder = encoder(tmp_path / "e", tiny.encoder, dropout=0.0)
    recipe = stage("retriever", **HOW)
    model, batch = prepared(tiny, recipe, folder)
    batch = dataclasses.replace(batch, excluded=None)
    (tmp_path / "model").mkdir()
    checkpoint.save(tmp_path / "model", model, tiny.encoder, {})
    numbers, found = learn(model, batch, recipe)

    theirs = SentenceTransformer(str(tmp_path / "model"), device="cpu").double()
    texts = list(batch.sequences)
    groups = np.arange(6, len(texts)).reshape(6, 4).T  # positives, then each column of negatives
    features = [padded([texts[row] for row in rows]) for rows in (np.arange(6), *groups)]
    loss = MultipleNegativesRankingLoss(theirs, scale=1 / recipe.temperature)
    both = MatryoshkaLoss(theirs, loss, matryoshka_dims=[32, *recipe.prefixes])
    expected = both(features, None)
    expected.backward()
    assert numbers["loss"].item() == pytest.approx(expected.item(), rel=1e-9)
    wanted = {
        name: weight.grad
        for name, weight in theirs.transformers_model.named_parameters()
        if weight.grad is not None
    }
    same(found, {name: wanted[name] for name in found})


@pytest.mark.parametrize("similarity", ["dot", "cosine"])
def test_every_loss_is_added_for_each_prefix(tiny, tmp_path, teacher, similarity):
    """KL and contrastive loss, by hand; the other numbers describe whole vectors.

    Dot products of a prefix are multiplied by sqrt(32 / width).
    """
    recipe = stage("retriever", **HOW | {"similarity": similarity, "temperature": 2.0}, alpha=0.3)
    _, batch = prepared(tiny, recipe, tiny.encoder, teacher)
    vectors = torch.randn(30, 32, dtype=torch.float64)
    if similarity == "cosine":
        vectors = torch.nn.functional.normalize(vectors, dim=-1)
    loss, numbers = Objective(recipe)(vectors, batch)

    def by_hand(width):
        cut = vectors[:, :width]
        if similarity == "cosine":
            cut = cut / cut.norm(dim=-1, keepdim=True)
        else:
            cut = cut * (32 / width) ** 0.25
        queries = cut[:6] / 2.0
        passages = cut[6:].view(6, 4, -1)
        excluded = torch.from_numpy(batch.excluded)
        contrastive = losses.contrastive(queries, passages, excluded=excluded)
        kl = losses.kl(losses.group_scores(queries, passages), torch.from_numpy(batch.teacher))
        return kl + 0.3 * contrastive, contrastive

    expected = sum(by_hand(width)[0] for width in (32, 16, 5))
    assert loss.item() == pytest.approx(expected.item(), rel=1e-12)
    assert numbers["contrastive"].item() == pytest.approx(by_hand(32)[1].item(), rel=1e-12)


def test_prefixes_that_are_none_are_refused(tiny):
    recipe = stage("retriever", prefixes=(16, 32))
    model = checkpoint.start_model(tiny.encoder, "retriever", **recipe.model())
    with pytest.raises(InputError, match="its vectors have 32 numbers; expected widths below 32"):
        task_of(tiny, recipe, model)
