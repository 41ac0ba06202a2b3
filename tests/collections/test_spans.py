"""Queries that are spans of another collection's passages."""

import pandas as pd
import pytest

from cdmae.collections import settings_of
from cdmae.collections.store import Collection, table_of, write_collection
from cdmae.errors import InputError

WORDS = [f"word{number}" for number in range(60)]
TEXTS = [" ".join(WORDS[first : first + 40]) for first in range(12)]


def spans(folder, **values):
    """Read spans of a collection of 12 long passages and one short one."""
    passages = [(f"p{number}", "", text) for number, text in enumerate([*TEXTS, "too short"])]
    asked = {"test": pd.DataFrame(columns=["query_id", "text"])}
    write_collection(folder, Collection(table_of(passages), asked, {}, {}))
    return settings_of({"source": "spans", "of": str(folder), **values}, "spans").load()


def test_spans_ask_for_the_passages_that_contain_them(tmp_path):
    made = spans(tmp_path, queries=12)
    assert made.shared == tmp_path and list(made.queries) == ["train"]
    texts = {name: text for name, _, text in made.rows()}
    rows = made.qrels["train"].merge(made.queries["train"], on="query_id")
    assert len(rows) == 12 and set(rows["grade"]) == {1}
    for passage, query in zip(rows["passage_id"], rows["text"], strict=True):
        assert 5 <= len(query.split()) <= 16
        assert query in texts[passage]


def test_fewer_spans_are_some_of_all_in_the_passages_order(tmp_path):
    every = spans(tmp_path, queries=12).queries["train"]["query_id"].tolist()
    some = spans(tmp_path, queries=5).queries["train"]["query_id"].tolist()
    assert len(some) == 5
    assert some == [name for name in every if name in some] != every[:5]


def test_more_spans_than_long_passages_are_refused(tmp_path):
    with pytest.raises(InputError, match="queries is 13, but only 12"):
        spans(tmp_path, queries=13)
