"""BM25 by Lucene: against the formula, against pyserini's own searcher, and on odd text."""

import math
from collections import Counter

import numpy as np
import pyarrow.parquet as pq
import pytest

from cdmae.collections.store import table_of
from cdmae.errors import InputError
from cdmae.retrieval import bm25, lucene
from cdmae.retrieval.asking import Question

WORDS = ["ant", "bee", "cow", "dog", "elk", "fox", "gnu", "hen", "ibex", "jay", "koi", "lark"]


def collection(folder, texts, titles=None):
    """The passages of a collection, in row groups of 300."""
    rows = zip(map(str, range(len(texts))), titles or [""] * len(texts), texts, strict=True)
    folder.mkdir()
    pq.write_table(table_of(rows), folder / "passages.parquet", row_group_size=300)
    return folder


def corpus(rng, count, longest=30):
    return [" ".join(rng.choice(WORDS, rng.integers(1, longest))) for _ in range(count)]


@pytest.fixture(scope="module")
def texts():
    rng = np.random.default_rng(5)
    texts = corpus(rng, 1500)
    texts[700:703] = [texts[3]] * 3  # ties
    texts[40] = ""
    return texts


@pytest.fixture(scope="module")
def index(texts, tmp_path_factory):
    folder = tmp_path_factory.mktemp("bm25")
    bm25.build(collection(folder / "docs", texts), folder / "index", threads=2)
    return folder / "index"


def naive(texts, query, k1, b):
    """Robertson's BM25 with Lucene's idf and without the factor k1 + 1; lengths below 40 are stored
    exactly.
    """
    passages = [Counter(text.split()) for text in texts]
    lengths = np.array([sum(passage.values()) for passage in passages])
    average = lengths.sum() / (lengths > 0).sum()
    scores = np.zeros(len(texts))
    for word, times in Counter(query.split()).items():
        holding = sum(word in passage for passage in passages)
        count = np.count_nonzero(lengths)
        idf = math.log(1 + (count - holding + 0.5) / (holding + 0.5))
        frequency = np.array([passage[word] for passage in passages])
        scores += times * idf * frequency / (frequency + k1 * (1 - b + b * lengths / average))
    return scores


@pytest.mark.parametrize(("k1", "b"), [(0.9, 0.4), (0.82, 0.68), (2.0, 0.0)])
def test_scores_are_those_of_the_formula(texts, index, k1, b):
    run = bm25.search(index, ["cow", "ant bee bee fox"], len(texts), k1, b)
    for query, text in enumerate(["cow", "ant bee bee fox"]):
        passages, scores = run.ranked(query)
        expected = naive(texts, text, k1, b)
        assert set(passages) == set(np.flatnonzero(expected))
        # Anserini rounds to four decimals and makes ties distinct in steps of 1e-6
        near = {"rtol": 0, "atol": 1e-4 + 1e-6 * len(passages)}
        np.testing.assert_allclose(scores, expected[passages], **near)
        assert (np.diff(expected[passages]) < 1e-6).all() and (np.diff(scores) < 0).all()
        assert passages.dtype == np.int32 and scores.dtype == np.float32


def test_parts_processes_and_pages_do_not_matter(texts, index, tmp_path, monkeypatch):
    """Two threads indexed the passages, so that documents are not in the order of the rows."""
    rows = np.load(index / lucene.ROWS, mmap_mode="r")
    assert sorted(rows) == [row for row, text in enumerate(texts) if text]
    monkeypatch.setattr(lucene, "PAGE", 7)
    bm25.build(collection(tmp_path / "docs", texts), tmp_path / "one", threads=1)
    queries = [*corpus(np.random.default_rng(9), 30, 6), texts[3], 'cow (AND) "ant', "zebra", ""]
    one = bm25.search(tmp_path / "one", queries, 50)
    ties = bm25.search(index, [texts[3]], 2000, b=0.0).passages
    assert [row for row in ties if row in (3, 700, 701, 702)] == [3, 700, 701, 702]
    monkeypatch.setattr(lucene, "QUERIES", 12)
    several = bm25.search(index, queries, 50, threads=3)
    for name in ("passages", "scores", "starts"):
        np.testing.assert_array_equal(getattr(one, name), getattr(several, name))
    for query in range(28, 34):
        found = bm25.answer({"index": index, "k1": 0.9, "b": 0.4}, Question(queries[query], 50))
        assert found.passages.tolist() == one.ranked(query)[0].tolist()
        assert found.scores.tolist() == one.ranked(query)[1].tolist()


def test_odd_text(tmp_path):
    long = " ".join(f"word{i}" for i in range(3000))
    odd = [
        "", "  ", "!!! ---", "smile 😀 𠀀", "nul\x00inside", "ünïcödé straße", "a" * 40_000, long, "x\u2028y",
        "tab\tline\nreturn\r",
    ]  # fmt: skip
    titles = ["", "", "", "", "", "Titel", "", "", "", ""]
    bm25.build(collection(tmp_path / "docs", odd, titles), tmp_path / "odd", threads=4)
    asked = [*odd, "titel", "😀", "(a AND *)", "inside", "the of and", "line"]
    run = bm25.search(tmp_path / "odd", asked, 10)
    found = [run.ranked(query)[0].tolist() for query in range(len(run))]
    assert found[0] == found[1] == found[2] == found[14] == []
    for row, queries in {3: (3, 11), 4: (4, 13), 5: (5, 10), 7: (7,), 8: (8,), 9: (9, 15)}.items():
        assert all(found[query] == [row] for query in queries)


def test_title_and_text_are_joined_and_stemmed_and_there_may_be_nothing(tmp_path):
    texts, titles = ["about running", "nothing"], ["Horses", "Horse rider"]
    bm25.build(collection(tmp_path / "docs", texts, titles), tmp_path / "i")
    assert bm25.search(tmp_path / "i", ["horse run"], 1000).passages.tolist() == [0, 1]
    assert len(bm25.search(tmp_path / "i", [], 10)) == 0
    bm25.build(collection(tmp_path / "nothing", []), tmp_path / "none")
    run = bm25.search(tmp_path / "none", ["ant"], 10)
    assert len(run) == 1 and not len(run.passages)


def test_a_folder_that_is_no_index_and_exceptions_of_java_are_refused(tmp_path):
    for folder in (tmp_path / "missing", tmp_path):
        words = f"{folder} is not a complete index .*; delete it and run again"
        with pytest.raises(InputError, match=words):
            bm25.search(folder, ["ant"], 10)
    with pytest.raises(InputError, match=r"^Anserini's index.Constants failed on index: .*'main'"):
        lucene.anserini("index.Constants", "index")
