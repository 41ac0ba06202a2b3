"""A table of pairs as a run: given negatives and scores in the rows of a stored collection."""

import importlib
import json

import pytest

from cdmae.collections.sources.pairs import Settings
from cdmae.collections.store import write_collection
from cdmae.errors import InputError
from cdmae.runs import read_run

ROWS = [
    {"q": "what is tea", "positive": "A drink.", "negative": "A boat."},
    {"q": "what is rain", "positive": "Water.", "negative": "A drink."},
]
HELD_OUT = {"q": "held out", "positive": "Water.", "negative": "A boat."}


@pytest.fixture
def read(tmp_path):
    """A function that reads a table as a job does, for the collection of the first two rows."""
    script = importlib.import_module("workflow.scripts.read_run")
    table = tmp_path / "pairs.jsonl"

    def write(rows):
        table.write_text("".join(json.dumps(row) + "\n" for row in rows))

    write(ROWS)
    write_collection(tmp_path / "collection", Settings(path=str(table), query="q").load())

    def run(rows):
        write(rows)
        folders = {"collections": [tmp_path / "collection"], "outputs": [tmp_path / "run.parquet"]}
        script.main(files=[table], splits=["train"], depth=10, **folders)
        return read_run(tmp_path / "run.parquet")

    return run


def test_the_job_finds_the_columns_that_the_collection_names_and_the_queries_of_its_split(read):
    run = read([*ROWS, HELD_OUT])
    assert [run.ranked(row)[0].tolist() for row in range(len(run))] == [[1], [0]]


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([*ROWS, ROWS[0] | {"negative": "New."}], "line 3: .*not in the collection"),
        ([{"q": "what is tea", "positive": "A drink."}], "negatives or scores for none of the 2 q"),
        ([HELD_OUT], "negatives or scores for none of the 2 q"),
    ],
)
def test_a_table_that_does_not_fit_is_refused(read, rows, words):
    with pytest.raises(InputError, match=f"pairs.jsonl.* {words}"):
        read(rows)
