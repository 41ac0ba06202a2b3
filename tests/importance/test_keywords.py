"""Keywords of passages: the most important words, as queries of a collection."""

import json

import pytest

from cdmae.importance import keywords as module
from cdmae.importance.keywords import keywords
from cdmae.importance.shading import Word


def scored(**words):
    return [Word(text.strip("_"), value) for text, value in words.items()]


def test_the_most_important_words_are_keywords_in_the_order_of_the_text():
    words = scored(a=9.0, heap=3.0, keeps=1.0, order=2.0)
    assert keywords(words, 2) == ["heap", "order"]
    assert keywords(words, 3) == ["heap", "keeps", "order"], "a is a stop-word"


def test_each_word_is_chosen_once_by_its_largest_importance():
    words = [Word("tree", 1.0), Word("root", 2.0), Word("leaf", 2.5), Word("tree", 3.0)]
    assert keywords(words, 2) == ["tree", "leaf"]
    alike = [Word("b", 1.0), Word("c", 1.0), Word("e", 1.0)]
    assert keywords(alike, 2) == ["b", "c"], "of equally important words, the first"


@pytest.mark.parametrize("text", ["[UNK]", "--", "the"])
def test_what_is_no_word_is_no_keyword(text):
    assert keywords([Word(text, 9.0), Word("heap", 1.0)], 1) == ["heap"]


def test_every_passage_with_enough_words_has_a_line(tmp_path, monkeypatch):
    """The importance is that of the table, looked up for many passages at a time."""
    passages = {
        "p1": "heap tree root leaf",
        "p2": "",
        "p3": "heap heap tree",
        "p4": "one two three",
    }
    lines = [json.dumps({"_id": name, "text": text}) + "\n" for name, text in passages.items()]
    (tmp_path / "corpus.jsonl").write_text("".join(lines))
    asked = []

    class Shades:
        def __init__(self, table, tokenizer):
            asked.append((table, tokenizer))

        def words(self, texts):
            return [[Word(word, float(len(word))) for word in text.split()] for text in texts]

    monkeypatch.setattr(module, "Shades", Shades)
    monkeypatch.setattr(module, "AT_ONCE", 3)
    settings = {
        "source": "pseudo", "of": {"source": "beir", "path": str(tmp_path)}, "method": "written",
        "keywords_of": ["ami", "tiny", "docs"], "keywords": 3,
    }  # fmt: skip
    module.write_keywords(
        settings=settings, importance="i", tokenizer="t", output=tmp_path / "keywords.tsv"
    )
    assert asked == [("i", "t")]
    written = (tmp_path / "keywords.tsv").read_text().splitlines()
    assert written == ["p1\theap tree root", "p4\tone two three"]
