"""`source: pairs`: tables in the columns of three libraries become one collection."""

import importlib

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from small_collections import relevant, texts_of, write_lines

from cdmae.collections.sources.pairs import Settings
from cdmae.collections.store import read_passages, read_queries, write_collection
from cdmae.errors import InputError
from cdmae.runs import Target, read_run

TEA, CHINA, COFFEE, OLD = "Tea is a drink.", "Tea is from China.", "Coffee, too.", "Tea is old."
SENTENCE_TRANSFORMERS = [
    {"anchor": "what is tea", "positive": TEA, "negative_1": COFFEE, "negative_2": OLD},
    {"anchor": "what is tea", "positive": CHINA, "negative_1": COFFEE, "negative_2": OLD},
    {"anchor": "what is coffee", "positive": COFFEE, "negative_1": OLD, "negative_2": TEA},
]
TITLED_TEA = {"docid": "p1", "title": "Tea", "text": TEA}
P2, P3, P4 = (
    {"docid": f"p{n}", "title": "", "text": t} for n, t in ((2, CHINA), (3, COFFEE), (4, OLD))
)
TEVATRON = [
    {"query_id": "q1", "query": "what is tea", "positive_passages": [TITLED_TEA, P2], "negative_passages": [P3, P4]},
    {"query_id": "q2", "query": "what is coffee", "positive_passages": [P3], "negative_passages": [P4, TITLED_TEA]},
]  # fmt: skip
FLAG = [
    {"query": "what is tea", "pos": [TEA, CHINA], "neg": [COFFEE, OLD], "pos_scores": [9, 8], "neg_scores": [1, 2]},
    {"query": "what is coffee", "pos": [COFFEE], "neg": [OLD, TEA], "pos_scores": [7], "neg_scores": [-1, -2]},
]  # fmt: skip
RELEVANT = {"what is tea": {TEA, CHINA}, "what is coffee": {COFFEE}}


def table(path, rows):
    """Write a table in the format of the file's suffix."""
    if path.suffix == ".jsonl":
        write_lines(path, rows)
    elif path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    else:
        delimiter = "," if path.suffix == ".csv" else "\t"
        pd.DataFrame(rows).to_csv(path, sep=delimiter, index=False)
    return Settings(path=str(path))


def relevant_texts(collection, split="train"):
    texts = texts_of(collection)
    found = relevant(collection, split)
    return {query: {texts[name] for name in names} for query, names in found.items()}


@pytest.mark.parametrize(
    ("suffix", "rows"),
    [
        *((suffix, SENTENCE_TRANSFORMERS) for suffix in (".jsonl", ".csv", ".tsv", ".parquet")),
        *((suffix, rows) for suffix in (".jsonl", ".parquet") for rows in (TEVATRON, FLAG)),
    ],
)
def test_the_columns_of_three_libraries_give_the_same_collection(tmp_path, rows, suffix):
    settings = table(tmp_path / f"pairs{suffix}", rows)
    assert settings.expected()[::2] == (4, {"train": 2})
    collection = settings.load()
    assert len(collection.passages) == 4
    assert relevant_texts(collection) == RELEVANT


def test_ids_and_titles_of_the_table_are_kept(tmp_path):
    settings = table(tmp_path / "pairs.jsonl", TEVATRON)
    collection = settings.load()
    assert next(collection.rows()) == ("p1", "Tea", TEA)
    assert collection.queries["train"]["query_id"].tolist() == ["q1", "q2"]
    plain = Settings(path=settings.path, titles=False).load()
    assert set(plain.passages["title"].to_pylist()) == {""}
    path = tmp_path / "faq.csv"  # two answers on the page /b share its address
    path.write_text("Question,Answer,URL\nwhat is tea,A drink.,/a\nwhy,Because.,/b\nhow,So.,/b\n")
    names = list(texts_of(Settings(path=str(path), query="Question").load()))
    assert names[:2] == ["/a", "/b"]
    assert names[2].startswith("/b#") and len(names) == 3
    rows = [{"query_id": "1", "query": query, "positive": query * 2} for query in ("a", "b", "a")]
    asked = table(tmp_path / "numbered.jsonl", rows).load()  # two queries have one id
    first, second = asked.queries["train"]["query_id"]
    assert first == "1" and second.startswith("1#")
    assert relevant_texts(asked) == {"a": {"aa"}, "b": {"bb"}}


def test_a_title_of_a_row_is_that_of_its_passage(tmp_path, capsys):
    """Unless the title is the query; columns that are not read are named."""
    path = tmp_path / "faq.csv"
    path.write_text("question,title,context,topic\nhow,Tea,Pour it.,drinks\n")
    assert [row[1:] for row in Settings(path=str(path)).load().rows()] == [("Tea", "Pour it.")]
    assert "faq.csv: ignored columns: topic" in capsys.readouterr().err
    collection = Settings(path=str(path), query="title").load()
    assert [row[1:] for row in collection.rows()] == [("", "Pour it.")]


def test_a_corpus_adds_passages_and_gives_ids_to_equal_texts(tmp_path):
    path = table(tmp_path / "pairs.jsonl", SENTENCE_TRANSFORMERS).path
    rows = [{"_id": "7", "text": f" {COFFEE} "}, {"_id": "8", "title": "More", "text": "Milk."}]
    corpus = table(
        tmp_path / "corpus.jsonl", [*rows, rows[0]]
    ).path  # a repeated row is one passage
    collection = Settings(path=path, corpus=corpus).load()
    assert list(texts_of(collection))[:2] == ["7", "8"]
    assert len(collection.passages) == 5
    assert relevant(collection)["what is coffee"] == ["7"]


def test_a_folder_has_one_or_several_tables_per_split(tmp_path):
    for number, row in enumerate(SENTENCE_TRANSFORMERS[:2]):
        table(tmp_path / f"train-0000{number}-of-00002.parquet", [row])
    table(tmp_path / "dev.csv", SENTENCE_TRANSFORMERS[2:])
    settings = Settings(path=str(tmp_path))
    assert settings.judged() == {"dev": True, "train": True}
    assert len(settings.depends()) == 3
    collection = settings.load()
    assert relevant_texts(collection, "dev") == {"what is coffee": {COFFEE}}
    assert relevant_texts(collection) == {"what is tea": {TEA, CHINA}}


def test_a_label_of_0_is_a_judgment_that_the_passage_is_not_relevant(tmp_path):
    judged = [(TEA, 1), (OLD, 0), (TEA, 0)]  # of repeated ones, the highest counts
    rows = [{"query": "tea", "positive": text, "label": label} for text, label in judged]
    collection = table(tmp_path / "pairs.csv", rows).load()
    assert relevant_texts(collection) == {"tea": {TEA}}
    assert collection.qrels["train"]["grade"].tolist() == [1, 0]


# --- a table as a run -----------------------------------------------------------------------------


def run_of(folder, rows, stored=None, **settings):
    """Read a table as a job does, for the collection of its rows, or of other ones."""
    file, collection = folder / "pairs.jsonl", folder / "collection"
    write_lines(file, stored or rows)
    write_collection(collection, Settings(path=str(file), **settings).load())
    write_lines(file, rows)
    target = Target("collection", "train", collection, output=folder / "run.parquet")
    script = importlib.import_module("workflow.scripts.read_run")
    script.main(files=[file], targets=[target], depth=9)
    return read_run(target.output)


ONE = {"query": "tea", "positive": TEA, "negative_1": COFFEE, "negative_2": OLD}


@pytest.mark.parametrize(
    ("rows", "query", "expected"),
    [
        (FLAG, "what is tea", {TEA: 9, CHINA: 8, OLD: 2, COFFEE: 1}),
        ([ONE | {"label": [3.0, 1.0, 2.0]}], "tea", {TEA: 3, OLD: 2, COFFEE: 1}),
        ([ONE | {"label": [0.5, 0.25]}], "tea", {TEA: 0, OLD: -0.25, COFFEE: -0.5}),
        (TEVATRON, "what is tea", {COFFEE: 1, OLD: 0.5}),
    ],
)
def test_negatives_and_scores_of_a_table_are_a_run(tmp_path, rows, query, expected):
    """A label with negatives has scores, or margins; negatives without scores keep their order."""
    run = run_of(tmp_path, rows)
    queries = read_queries(tmp_path / "collection", "train")["text"].tolist()
    texts = read_passages(tmp_path / "collection")["text"].to_pylist()
    found, scores = run.ranked(queries.index(query))
    assert dict(zip([texts[row] for row in found], scores.tolist(), strict=True)) == expected


ROWS = [
    {"q": "what is tea", "positive": "A drink.", "negative": "A boat."},
    {"q": "what is rain", "positive": "Water.", "negative": "A drink."},
]
HELD_OUT = {"q": "held out", "positive": "Water.", "negative": "A boat."}


def test_the_job_finds_the_columns_that_the_collection_names_and_the_queries_of_its_split(tmp_path):
    run = run_of(tmp_path, [*ROWS, HELD_OUT], ROWS, query="q")
    assert [run.ranked(row)[0].tolist() for row in range(len(run))] == [[1], [0]]
    with pytest.raises(InputError, match="pairs.jsonl.* line 3: "):
        run_of(tmp_path, [*ROWS, ROWS[0] | {"negative": "New."}], ROWS, query="q")
    with pytest.raises(InputError, match="pairs.jsonl.* none of the 2 queries"):
        run_of(tmp_path, [HELD_OUT], ROWS, query="q")
