"""Joining the passages of several collections."""

import pytest
from small_collections import write_beir

from cdmae.collections.sources import joined
from cdmae.errors import InputError
from cdmae.fields import parse


@pytest.fixture
def parts(tmp_path):
    """Two collections that share the id of a passage, and a folder of text."""
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes/a.txt").write_text("g h\n")
    return {
        "one": write_beir(tmp_path / "one", {"p0": "a b", "p1": "c d e"}),
        "two": write_beir(tmp_path / "two", {"p0": "f"}),
        "notes": {"source": "text", "path": str(tmp_path / "notes")},
    }


def test_passages_follow_each_other_and_ids_begin_with_the_collection(parts):
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


def test_a_mistake_within_a_collection_names_its_key(parts):
    with pytest.raises(InputError, match="^of.two.pth is not a setting; did you mean path?"):
        parse(joined.Settings, {"of": parts | {"two": {"source": "beir", "pth": "b", "path": "a"}}})
    with pytest.raises(InputError, match="^of.two is 3; expected a mapping"):
        parse(joined.Settings, {"of": parts | {"two": 3}})
