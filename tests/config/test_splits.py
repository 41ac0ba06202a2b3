"""The split that decides which system is best, and the one that is reported."""

import json
from dataclasses import replace

import pytest

from cdmae.config.load import load
from cdmae.config.splits import is_dev, roles


def test_a_split_is_for_choosing_by_its_name():
    assert all(map(is_dev, ["dev", "validation", "dev/small", "dev2", "DEV", "val"]))
    assert not any(map(is_dev, ["test", "train", "value", "device"]))


def config(tmp_path, splits, tuned_on=(), **evaluated):
    """A config with a collection of judged splits, and queries that are made from its text."""
    folder = tmp_path / "mine"
    (folder / "qrels").mkdir(parents=True, exist_ok=True)
    words = " ".join(f"word{n}" for n in range(20))
    rows = [{"_id": f"p{n}", "text": f"passage {n} {words}"} for n in range(20)]
    (folder / "corpus.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "queries.jsonl").write_text('{"_id": "q", "text": "a query"}\n')
    for split in splits:
        (folder / f"qrels/{split}.tsv").write_text("q\tp1\t1\n")
    mine = {"source": "beir", "path": str(folder)}
    made = {"source": "pseudo", "of": mine, "method": "span", "holdout": {"dev": 0.2, "test": 0.2}}
    systems = {"bm25": {"kind": "bm25"}, "other": {"kind": "bm25", "k1": 1.5}}
    if tuned_on:
        systems["fused"] = {"kind": "fusion", "of": ["bm25", "other"], "tuned_on": [*tuned_on]}
    return load(
        {
            "results": "out",
            "collections": {"mine": mine, "made": made},
            "systems": systems,
            "evaluation": {"collections": evaluated},
        }
    )


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
    tmp_path, splits, tuned, deciding, reported
):
    found = roles(config(tmp_path, splits, ("mine", tuned) if tuned else (), mine=splits))
    assert found == (("mine", deciding), ("mine", reported))


def test_judged_queries_come_before_queries_that_were_made_from_their_text(tmp_path):
    both = config(tmp_path, ["dev", "test"], made=["dev", "test"], mine=["test", "dev"])
    assert roles(both) == (("mine", "dev"), ("mine", "test"))
    alone = config(tmp_path, ["dev", "test"], made=["dev", "test"])
    assert roles(alone) == (("made", "dev"), ("made", "test"))
    values = alone.values()
    values["collections"]["judged"] = {
        "source": "queries",
        "of": "mine",
        "path": f"{tmp_path}/mine",
    }
    values["evaluation"]["collections"]["judged"] = ["test"]
    assert roles(load(values)).reported == ("judged", "test"), "with the passages of mine"


def test_without_an_evaluated_split_nothing_decides(tmp_path):
    own = config(tmp_path, ["dev"], mine=["dev"])
    none = replace(own, evaluation=replace(own.evaluation, collections={"mine": ()}))
    assert roles(none) is None
