"""Published triples as a run: negatives once each, in their order, wherever blocks and archives cut the file."""

import gzip

import numpy as np
import pyarrow as pa
import pytest

from cdmae.collections import triples
from cdmae.errors import InputError

QUERIES, PASSAGES = pa.array(["7", "3", "5"]), pa.array(["0", "10", "2", "30"])
LINES = "3\t0\t30\n3\t0\t10\n3\t2\t30\n3\t2\t10\n99\t0\t10\n7\t10\t0\n"


def read(tmp_path, text=LINES, depth=10, name="triples.tsv", passages=PASSAGES):
    path = tmp_path / name
    path.write_bytes(gzip.compress(text.encode()) if name.endswith(".gz") else text.encode())
    return triples.read(path, QUERIES, passages, depth)


def ranked(run):
    return [run.ranked(query)[0].tolist() for query in range(len(run))]


@pytest.mark.parametrize("name", ["triples.tsv", "triples.tsv.gz"])
def test_negatives_come_once_in_their_order_and_unjudged_queries_not_at_all(tmp_path, name):
    run = read(tmp_path, name=name)
    assert ranked(run) == [[0], [3, 1], []]
    assert run.scores.tolist() == [0, 0, -1]
    assert (run.passages.dtype, run.scores.dtype) == (np.int32, np.float32)
    assert ranked(read(tmp_path, name=name, depth=1)) == [[0], [3], []]


def test_a_query_may_stand_in_two_places_and_blocks_make_no_difference(tmp_path, monkeypatch):
    rng = np.random.default_rng(1)
    text = "".join(f"{query}\t0\t{rng.choice([0, 10, 2, 30])}\n" for query in (3, 7, 5) for _ in range(500))
    whole = ranked(read(tmp_path, text))
    assert ranked(read(tmp_path, LINES + "3\t0\t2\n3\t0\t30\n")) == [[0], [3, 1, 2], []]
    monkeypatch.setattr(triples, "BLOCK", 100)
    assert ranked(read(tmp_path, text)) == whole
    assert list(map(len, whole)) == [4, 4, 4]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("3\t0\t4\n", "names the passage 4, which is not in the collection"),
        ("3\t0\t400\n", "names the passage 400, which is not in the collection"),
        ("3\t0\n", "is damaged, or its lines are not query, positive and negative id"),
        ("3\t0\tten\n", "is damaged, or its lines are not query, positive and negative id"),
        ("8\t0\t10\n", "has none of the 3 queries of the split"),
    ],
)
def test_files_of_something_else_are_refused(tmp_path, text, message):
    with pytest.raises(InputError, match=message):
        read(tmp_path, text)


def test_an_archive_that_breaks_off_and_ids_that_are_no_numbers_are_refused(tmp_path):
    whole = gzip.compress(LINES.encode() * 1000)
    (tmp_path / "t.gz").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match="t.gz is damaged"):
        triples.read(tmp_path / "t.gz", QUERIES, PASSAGES, 10)
    with pytest.raises(InputError, match="triples name queries and passages by numbers"):
        read(tmp_path, passages=pa.array(["a"]))
