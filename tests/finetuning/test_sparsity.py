"""The regulariser of a sparse head, and what a sparse head ends with."""

import pytest
from tiny_training import stage, train

from cdmae.errors import InputError
from cdmae.finetuning.regulariser import Sparsity


@pytest.mark.parametrize(
    ("warmup", "steps", "expected"),
    [(0.5, (0, 1, 3, 7), (1 / 16, 1 / 4, 1, 1)), (2, (0, 1), (1 / 4, 1)), (0, (0,), (1,))],
)
def test_the_regulariser_grows_quadratically(warmup, steps, expected):
    sparsity = Sparsity(stage("sparse", flops_warmup=warmup), "tiny", 8, 160)
    assert tuple(map(sparsity.grown, steps)) == expected


def test_saturated_vectors_are_noted_after_the_warm_up():
    sparsity = Sparsity(stage("sparse", flops_warmup=4), "tiny", 8, 160)

    def note(entries, step):
        return sparsity.check({"query_entries": 9, "passage_entries": entries}, step)

    assert "more than 50% of the 160 possible entries: raise passage_flops" in note(99, 5)
    assert note(99, 4) == note(79, 9) == ""


@pytest.mark.parametrize("key", ["query_flops", "passage_flops"])
def test_a_training_ends_where_its_vectors_died(tiny, tmp_path, key):
    recipe = stage("sparse", **{key: 1e6}, learning_rate=0.5, epochs=20)
    with pytest.raises(InputError, match="training of tiny collapsed: the vectors of all"):
        train(tiny, tmp_path, recipe)
