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


@pytest.fixture
def read(tmp_path):
    """A function that reads a table as a job does: as a run of one split of a collection."""
    script = importlib.import_module("workflow.scripts.read_run")

    def run(rows, **settings):
        table = tmp_path / "pairs.jsonl"
        table.write_text("".join(json.dumps(row) + "\n" for row in rows))
        if not (tmp_path / "collection").exists():
            source = Settings(path=str(table), **settings)
            write_collection(tmp_path / "collection", source.load())
        output = tmp_path / "run.parquet"
        script.main(
            files=[table],
            collections=[tmp_path / "collection"],
            splits=["train"],
            outputs=[output],
            depth=10,
        )
        return read_run(output)

    return run


def test_the_job_finds_the_columns_that_the_collection_names(read):
    run = read(ROWS, query="q")
    assert [run.ranked(row)[0].tolist() for row in (0, 1)] == [[1], [0]]


def test_queries_of_other_splits_are_left_out(read):
    read(ROWS, query="q")
    more = [*ROWS, {"q": "held out", "positive": "Water.", "negative": "A boat."}]
    assert len(read(more)) == 2


def test_a_mistake_is_reported_with_its_line(read):
    read(ROWS, query="q")
    row = {"q": "what is tea", "positive": "A drink.", "negative": "New."}
    with pytest.raises(InputError, match="pairs.jsonl, line 3: .*not in the collection"):
        read([*ROWS, row])


@pytest.mark.parametrize(
    "rows",
    [
        [{"q": "what is tea", "positive": "A drink."}],
        [{"q": "of another split", "positive": "A drink.", "negative": "Water."}],
    ],
)
def test_a_table_that_gives_no_query_a_passage_is_refused(read, rows):
    read(ROWS, query="q")
    with pytest.raises(InputError, match="pairs.jsonl has negatives or scores for none of the 2 q"):
        read(rows)
