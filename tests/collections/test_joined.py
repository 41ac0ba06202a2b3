"""Joining the passages of several collections."""

import json

import pytest

from cdmae.collections.sources import joined, pseudo
from cdmae.collections.store import read_passages, write_collection
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
    assert settings.judged() == {}
    assert [file.name for file in settings.depends()] == ["corpus.jsonl", "corpus.jsonl", "a.txt"]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"two": None, "notes": None}, "of has 1 collections; expected two or more"),
        ({"two": 3}, "of.two is 3; expected a mapping"),
        (
            {"two": {"source": "joined", "of": {}}},
            "of.two is .*; expected a mapping of another source",
        ),
        ({"two": {"source": "beer"}}, "beer is not a source"),
        ({"two": {"source": "beir", "path": "a", "pth": "b"}}, "pth"),
    ],
)
def test_what_cannot_be_joined_is_refused(parts, changed, message):
    wrong = {name: own for name, own in (parts | changed).items() if own is not None}
    with pytest.raises(InputError, match=message):
        parse(joined.Settings, {"of": wrong})


def test_the_modules_of_all_sources_make_the_collection(parts):
    folder = "cdmae.collections.sources"
    assert joined.Settings(of=parts).modules() == [
        f"{folder}.beir",
        f"{folder}.beir",
        f"{folder}.text",
    ]
    nested = {"source": "joined", "of": parts}
    made = parse(pseudo.Settings, {"of": nested, "method": "first_sentence"}, "made")
    assert made.modules()[0] == f"{folder}.joined" and f"{folder}.text" in made.modules()
