"""Joining the passages of several collections."""

import json
from pathlib import Path

import pytest

from cdmae.collections import Counts
from cdmae.collections.sources import joined
from cdmae.collections.store import read_passages, read_qrels, read_queries, write_collection
from cdmae.errors import InputError
from cdmae.fields import parse


@pytest.fixture
def parts(tmp_path):
    """Two collections in BEIR's layout that share the id of a passage, and a folder of text."""
    settings = {}
    for name, texts in (("one", ["a b", "c d e"]), ("two", ["f"])):
        folder = tmp_path / name
        folder.mkdir()
        lines = [{"_id": f"p{row}", "title": name, "text": text} for row, text in enumerate(texts)]
        (folder / "corpus.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        settings[name] = {"source": "beir", "path": str(folder)}
    folder = tmp_path / "notes"
    folder.mkdir()
    (folder / "a.txt").write_text("g h\n")
    return settings | {"notes": {"source": "text", "path": str(folder)}}


def test_passages_follow_each_other_and_ids_begin_with_the_collection(parts, tmp_path):
    settings = joined.Settings(of=parts)
    assert write_collection(tmp_path / "out", settings.load()) == 4
    rows = [tuple(row.values()) for row in read_passages(tmp_path / "out").to_pylist()]
    assert rows == [
        ("one/p0", "one", "a b"),
        ("one/p1", "one", "c d e"),
        ("two/p0", "two", "f"),
        ("notes/a.txt#1", "a", "g h"),
    ]
    assert settings.judged() == {} and settings.check() == Counts(4)
    assert [file.name for file in settings.depends()] == ["corpus.jsonl", "corpus.jsonl", "a.txt"]
    assert settings.folders() == [tmp_path / "notes"]


def judge(parts, name, split, *judgments):
    """Add queries with judgments to a collection in BEIR's layout: (query, passage)."""
    folder = Path(parts[name]["path"])
    (folder / "qrels").mkdir(exist_ok=True)
    queries = dict.fromkeys(query for query, _ in judgments)
    with (folder / "queries.jsonl").open("a") as file:
        for query in queries:
            file.write(json.dumps({"_id": query, "text": f"{name} asks {query}"}) + "\n")
    lines = [f"{query}\t{passage}\t1\n" for query, passage in judgments]
    header = "query-id\tcorpus-id\tscore\n"
    (folder / f"qrels/{split}.tsv").write_text(header + "".join(lines))


def test_the_queries_of_chosen_splits_are_joined_too(parts, tmp_path):
    """Ids begin with the collection; a split that only one collection has is that one's."""
    judge(parts, "one", "train", ("q1", "p0"), ("q2", "p1"))
    judge(parts, "one", "dev", ("q3", "p1"))
    judge(parts, "two", "train", ("q1", "p0"))
    settings = joined.Settings(of=parts, splits=("train", "dev"))
    assert settings.judged() == {"train": True, "dev": True}
    assert settings.expected() is None or settings.expected()[2] == {"train": 3, "dev": 1}
    write_collection(tmp_path / "out", settings.load())
    asked = read_queries(tmp_path / "out", "train")
    assert asked["query_id"].tolist() == ["one/q1", "one/q2", "two/q1"]
    assert asked["text"].tolist() == ["one asks q1", "one asks q2", "two asks q1"]
    pairs = read_qrels(tmp_path / "out", "train")[["query", "passage"]].to_numpy().tolist()
    assert pairs == [[0, 0], [1, 1], [2, 2]]
    assert read_queries(tmp_path / "out", "dev")["query_id"].tolist() == ["one/q3"]
    parts.pop("notes")
    both = joined.Settings(of=parts, splits=("train",))
    assert both.check() == Counts(3)
    assert both.expected()[2] == {"train": 3}
    assert joined.Settings(of=parts).load().queries == {}


def test_a_split_without_judgments_is_not_joined(parts):
    with pytest.raises(
        InputError, match="splits has train, which has no judgments anywhere; expected"
    ):
        joined.Settings(of=parts, splits=("train",)).judged()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"two": None, "notes": None}, "of has 1 collections; expected two or more"),
        ({"two": 3}, "of.two is not a mapping"),
        ({"two": {"source": "joined", "of": {}}}, "of.two.source is joined; expected another"),
        ({"two": {"source": "beer"}}, "beer is not a source"),
        ({"two": {"source": "beir", "path": "a", "pth": "b"}}, "pth"),
    ],
)
def test_what_cannot_be_joined_is_refused(parts, changed, message):
    wrong = {name: own for name, own in (parts | changed).items() if own is not None}
    with pytest.raises(InputError, match=message):
        parse(joined.Settings, {"of": wrong})
