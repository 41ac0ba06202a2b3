"""Joining the passages of several collections."""

import pytest

from cdmae.collections.sources import joined
from cdmae.errors import InputError
from cdmae.fields import parse


@pytest.fixture
def parts(tmp_path):
    """Two collections that share the id of a passage, and a folder of text."""
    settings = {}
    for name, texts in (("one", ["a b", "c d e"]), ("two", ["f"])):
        folder = tmp_path / name
        folder.mkdir()
        lines = [f'{{"_id": "p{row}", "text": "{text}"}}\n' for row, text in enumerate(texts)]
        (folder / "corpus.jsonl").write_text("".join(lines))
        settings[name] = {"source": "beir", "path": str(folder)}
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/a.txt").write_text("g h\n")
    return settings | {"notes": {"source": "text", "path": str(tmp_path / "notes")}}


def test_passages_follow_each_other_and_ids_begin_with_the_collection(parts, tmp_path):
    settings = joined.Settings(of=parts)
    assert list(settings.load().rows()) == [
        ("one/p0", "", "a b"),
        ("one/p1", "", "c d e"),
        ("two/p0", "", "f"),
        ("notes/a.txt#1", "a", "g h"),
    ]
    assert settings.judged() == {}
    assert settings.expected()[0] == 4
    assert [file.name for file in settings.depends()] == ["corpus.jsonl", "corpus.jsonl", "a.txt"]
    names = [f"cdmae.collections.sources.{name}" for name in ("beir", "beir", "text")]
    assert settings.modules() == names


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"two": None, "notes": None}, "of has 1 collections; expected two or more"),
        ({"two": 3}, "of.two is 3; expected a mapping"),
        ({"two": {"source": "joined", "of": {}}}, "of.two is .*; expected a mapping of another source"),
        ({"two": {"source": "beir", "path": "a", "pth": "b"}}, "pth"),
    ],
)  # fmt: skip
def test_what_cannot_be_joined_is_refused(parts, changed, message):
    wrong = {name: own for name, own in (parts | changed).items() if own is not None}
    with pytest.raises(InputError, match=message):
        parse(joined.Settings, {"of": wrong})
