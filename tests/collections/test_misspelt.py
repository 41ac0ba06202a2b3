"""Misspelt queries: five kinds, repeatable, with the judgments of the queries as they were."""

import random

import pytest

from cdmae.collections import Counts
from cdmae.collections.sources import misspelt
from cdmae.collections.sources.misspelt import KINDS
from cdmae.collections.store import read_passages, read_qrels, read_queries, write_collection
from cdmae.errors import InputError
from cdmae.fields import parse


@pytest.fixture
def base(tmp_path):
    """A collection in BEIR's layout with three test queries; one has only stop-words."""
    folder = tmp_path / "base"
    (folder / "qrels").mkdir(parents=True)
    (folder / "corpus.jsonl").write_text('{"_id": "p", "title": "", "text": "binary heap"}\n')
    texts = {"q1": "what is a binary heap", "q2": "what is it", "q3": "sorting"}
    (folder / "queries.jsonl").write_text(
        "".join(f'{{"_id": "{name}", "text": "{text}"}}\n' for name, text in texts.items())
    )
    lines = ["query-id\tcorpus-id\tscore", *(f"{name}\tp\t1" for name in texts)]
    (folder / "qrels/test.tsv").write_text("\n".join(lines) + "\n")
    return {"source": "beir", "path": str(folder)}


def test_a_second_split_has_the_same_judgments_and_one_typo_per_query(base, tmp_path):
    settings = misspelt.Settings(of=base)
    assert settings.judged() == {"test": True, "test_typos": True}
    assert settings.check() == Counts(1, {"test": (3, 1), "test_typos": (3, 1)})
    collection = settings.load()
    assert collection.about["unchanged queries"] == {"test": 1}  # only stop-words
    write_collection(tmp_path / "out", collection)
    assert len(read_passages(tmp_path / "out")) == 1
    before, after = (read_queries(tmp_path / "out", split) for split in settings.judged())
    assert before["query_id"].tolist() == after["query_id"].tolist()
    assert after["text"][1] == "what is it"
    first, second = before["text"][0].split(), after["text"][0].split()
    changed = [(a, b) for a, b in zip(first, second, strict=True) if a != b]
    assert len(changed) == 1 and changed[0][0] in ("binary", "heap")
    assert after["text"][2] != "sorting"
    judged = [
        read_qrels(tmp_path / "out", split)["passage"].tolist() for split in settings.judged()
    ]
    assert judged == [[0, 0, 0]] * 2
    again = misspelt.Settings(of=base).load().queries["test_typos"]["text"].tolist()
    assert again == after["text"].tolist()
    other = misspelt.Settings(of=base, seed=1).load().queries["test_typos"]["text"].tolist()
    assert other != again


def expected(word, kind):
    """List all results of one kind of misspelling, by its definition."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    places = range(len(word))
    if kind == "insert":
        return {word[:i] + letter + word[i:] for i in range(len(word) + 1) for letter in letters}
    if kind == "delete":
        return {word[:i] + word[i + 1 :] for i in places}
    if kind == "swap":
        swapped = {word[:i] + word[i + 1] + word[i] + word[i + 2 :] for i in places[:-1]}
        return swapped - {word}
    beside = dict.fromkeys(letters, letters)
    if kind == "adjacent":
        beside = {"h": "yugjbn", "e": "wrsd", "a": "qwsz", "p": "ol"}
    return {word[:i] + letter + word[i + 1 :] for i in places for letter in beside[word[i]]} - {
        word
    }


@pytest.mark.parametrize("kind", KINDS)
def test_a_kind_reaches_all_and_only_its_misspellings(kind):
    draw = random.Random(3)
    assert {misspelt.changed("heap", kind, draw) for _ in range(5000)} == expected("heap", kind)


@pytest.mark.parametrize(
    "text", ["what is it", "an os", "x2 über", "can't won't", "", "2023", "e-mail"]
)
def test_stop_words_short_words_and_other_scripts_stay(text):
    assert misspelt.misspelt(text, "0 q") == text


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"splits": ["dev"]}, r"splits has dev; expected splits with judgments \(test\)"),
        ({"splits": []}, "expected one split or more"),
        ({"splits": ["test", "test"]}, "each once"),
        ({"of": {"source": "misspelt"}}, "of.source is misspelt; expected another source"),
    ],
)
def test_wrong_settings_are_refused(base, changed, message):
    with pytest.raises(InputError, match=message):
        parse(misspelt.Settings, {"of": base} | changed).judged()
