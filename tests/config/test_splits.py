"""The split that decides which system is best, and the one that is reported."""

import pytest

from cdmae.config.load import load
from cdmae.config.splits import is_dev, roles


def test_a_split_is_for_choosing_by_its_name():
    assert all(map(is_dev, ["dev", "validation", "dev/small", "dev2", "DEV", "val"]))
    assert not any(map(is_dev, ["test", "train", "value", "device"]))


def config(toy, splits, tuned_on=(), **evaluated):
    """A config with a collection of judged splits, and queries that are made from its text."""
    toy.Settings.judged = lambda settings: dict.fromkeys(splits, True)
    mine = {"source": "toy"}
    made = {"source": "pseudo", "of": mine, "method": "span", "holdout": {"dev": 0.2, "test": 0.2}}
    systems = {"bm25": {"kind": "bm25"}, "other": {"kind": "bm25", "k1": 1.5}}
    if tuned_on:
        systems["fused"] = {"kind": "fusion", "of": ["bm25", "other"], "tuned_on": [*tuned_on]}
    values = {"collections": {"mine": mine, "made": made}, "systems": systems}
    return load(values | {"evaluation": {"collections": evaluated}})


@pytest.mark.parametrize(
    ("splits", "tuned", "deciding", "reported"),
    [
        (["test", "dev"], "", "dev", "test"),  # not the first that the source lists
        (["test", "validation"], "", "validation", "test"),
        (["dev", "dev2", "test"], "", "dev", "test"),
        (["easy", "hard"], "", "easy", "hard"),
        (["test", "hard"], "", "hard", "test"),
        (["one", "two", "test"], "two", "two", "test"),
        (["dev", "dev2"], "", "dev", "dev2"),
        (["test"], "", "test", "test"),
        (["dev", "test"], "test", "dev", "dev"),  # what is tuned on is not reported
    ],
)
def test_the_deciding_split_is_not_the_reported_one_if_there_are_two(
    toy, splits, tuned, deciding, reported
):
    found = roles(config(toy, splits, ("mine", tuned) if tuned else (), mine=splits))
    assert found == (("mine", deciding), ("mine", reported))


def test_judged_queries_come_before_queries_that_were_made_from_their_text(toy, tmp_path):
    both = config(toy, ["dev", "test"], made=["dev", "test"], mine=["test", "dev"])
    assert roles(both) == (("mine", "dev"), ("mine", "test"))
    alone = config(toy, ["dev", "test"], made=["dev", "test"])
    assert roles(alone) == (("made", "dev"), ("made", "test"))
    (tmp_path / "qrels").mkdir()
    (tmp_path / "queries.jsonl").write_text('{"_id": "q", "text": "a query"}\n')
    (tmp_path / "qrels/test.tsv").write_text("q\tp1\t1\n")
    values = alone.values()
    values["collections"]["judged"] = {"source": "queries", "of": "mine", "path": str(tmp_path)}
    values["evaluation"]["collections"]["judged"] = ["test"]
    assert roles(load(values)).reported == ("judged", "test"), "with the passages of mine"
    assert roles(load({})) is None
