"""`source: pairs`: tables in the columns of three libraries become one collection."""

import csv
import gzip
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cdmae.collections.sources.pairs import Settings
from cdmae.collections.store import read_passages, read_qrels, read_queries, write_collection
from cdmae.errors import InputError
from cdmae.retrieval import pair_run

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
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    else:
        with open(path, "w", newline="") as file:
            writer = csv.DictWriter(file, rows[0], delimiter="," if path.suffix == ".csv" else "\t")
            writer.writeheader()
            writer.writerows(rows)
    return path


def texts(folder, split="train"):
    """The relevant texts of each query of a stored collection."""
    passages = read_passages(folder)["text"].to_pylist()
    queries = read_queries(folder, split)["text"]
    found = {text: set() for text in queries}
    for judgment in read_qrels(folder, split).itertuples():
        if judgment.grade > 0:
            found[queries[judgment.query]].add(passages[judgment.passage])
    return found


def given(folder, path):
    """The run of a table: each query's passages and scores, by text."""
    write_collection(folder, Settings(path=str(path)).load())
    passages = read_passages(folder)
    queries = read_queries(folder, "train")
    run = pair_run.read_run(path, queries, passages, 100, {"query": "", "positive": ""})
    names = passages["text"].to_pylist()
    found = {}
    for row, text in enumerate(queries["text"]):
        ranked, scores = run.ranked(row)
        found[text] = {names[i]: float(score) for i, score in zip(ranked, scores, strict=True)}
    return found


@pytest.mark.parametrize(
    ("suffix", "rows"),
    [
        *((suffix, SENTENCE_TRANSFORMERS) for suffix in (".jsonl", ".csv", ".tsv", ".parquet")),
        *((suffix, rows) for suffix in (".jsonl", ".parquet") for rows in (TEVATRON, FLAG)),
    ],
)
def test_the_columns_of_three_libraries_give_the_same_collection(tmp_path, rows, suffix):
    path = table(tmp_path / f"pairs{suffix}", rows)
    settings = Settings(path=str(path))
    assert settings.expected()[::2] == (4, {"train": 2})
    assert write_collection(tmp_path / "out", settings.load()) == 4
    assert texts(tmp_path / "out") == RELEVANT


def test_ids_and_titles_of_the_table_are_kept(tmp_path):
    path = table(tmp_path / "pairs.jsonl", TEVATRON)
    write_collection(tmp_path / "out", Settings(path=str(path)).load())
    passages = read_passages(tmp_path / "out").to_pylist()
    assert passages[0] == {"passage_id": "p1", "title": "Tea", "text": TEA}
    assert read_queries(tmp_path / "out", "train")["query_id"].tolist() == ["q1", "q2"]
    plain = Settings(path=str(path), titles=False).load()
    assert set(plain.passages["title"].to_pylist()) == {""}


def test_a_corpus_adds_passages_and_gives_ids_to_equal_texts(tmp_path):
    path = table(tmp_path / "pairs.jsonl", SENTENCE_TRANSFORMERS)
    rows = [{"_id": "7", "text": f" {COFFEE} "}, {"_id": "8", "title": "More", "text": "Milk."}]
    corpus = table(tmp_path / "corpus.jsonl", rows)
    write_collection(tmp_path / "out", Settings(path=str(path), corpus=str(corpus)).load())
    passages = read_passages(tmp_path / "out").to_pylist()
    assert len(passages) == 5
    assert [passage["passage_id"] for passage in passages[:2]] == ["7", "8"]
    assert texts(tmp_path / "out")["what is coffee"] == {f" {COFFEE} "}


def test_a_folder_has_one_or_several_tables_per_split(tmp_path):
    folder = tmp_path / "pairs"
    folder.mkdir()
    for number, row in enumerate(SENTENCE_TRANSFORMERS[:2]):
        table(folder / f"train-0000{number}-of-00002.parquet", [row])
    table(folder / "dev.csv", SENTENCE_TRANSFORMERS[2:])
    settings = Settings(path=str(folder))
    assert settings.judged() == {"dev": True, "train": True}
    assert len(settings.depends()) == 3
    write_collection(tmp_path / "out", settings.load())
    assert texts(tmp_path / "out", "dev") == {"what is coffee": {COFFEE}}
    assert texts(tmp_path / "out") == {"what is tea": {TEA, CHINA}}
    table(folder / "train.jsonl", SENTENCE_TRANSFORMERS)
    with pytest.raises(InputError, match="holds both train-00000-of-00002.parquet and train.jsonl"):
        settings.judged()


def test_a_label_of_0_is_a_judgment_that_the_passage_is_not_relevant(tmp_path):
    rows = [
        {"query": "tea", "positive": text, "label": label} for text, label in ((TEA, 1), (OLD, 0))
    ]
    path = table(tmp_path / "pairs.csv", rows)
    write_collection(tmp_path / "out", Settings(path=str(path)).load())
    assert texts(tmp_path / "out") == {"tea": {TEA}}
    assert sorted(read_qrels(tmp_path / "out", "train")["grade"]) == [0, 1]


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
    path = table(tmp_path / "pairs.jsonl", rows)
    assert given(tmp_path / "out", path)[query] == expected


# --- mistakes -------------------------------------------------------------------------------------

TWO = "query,positive\nq,p\n"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a,b\nq,p\n", "pairs.csv lacks the query column any of anchor, query, question; it has a, b"),
        ("query,b\nq,p\n", "pairs.csv lacks the positive column any of "),
        ("query,anchor,positive\nq,a,p\n", "pairs.csv has several query columns: anchor, query"),
        ("question;answer\nq;a\n", "pairs.csv, line 1: one column, question;answer"),
        (TWO + "q\n", "pairs.csv, line 3: another number of columns; expected query, positive"),
        (TWO + '"two\nlines",p\n"",p\n', 'pairs.csv, line 5: query is missing or empty; it has query, positive'),
        (TWO + "q,\n", "pairs.csv, line 3: positive has no passage; expected at least one"),
        ("query,positive,label\nq,p,.5\n", "pairs.csv, line 2: label is .5; expected 0 or 1"),
        ("query,positive,label\nq,p,0\n", "pairs.csv marks no passage as relevant"),
        ("query,positive,negative,label\nq,p,n,x\n", "pairs.csv, line 2: label has x; expected finite"),
        ("query,pos,neg,pos_scores\nq,p,n,1\n", "pairs.csv, line 2: 1 scores for 2 passages"),
        (TWO + 'q,"p\n', "pairs.csv, line 3: not a row of the table ("),
        ("query,positive\n", "pairs.csv holds no pairs"),
    ],
)  # fmt: skip
def test_a_mistake_is_reported_with_its_line(tmp_path, text, sentence):
    path = tmp_path / "pairs.csv"
    path.write_text(text)
    with pytest.raises(InputError) as caught:
        Settings(path=str(path)).load()
    assert sentence in str(caught.value)


def test_files_that_are_no_table_are_refused(tmp_path):
    (tmp_path / "pairs.xlsx").write_text("")
    for name, message in (
        ("none.csv", "is not a file"),
        ("pairs.xlsx", "expected a table"),
        ("", "holds no table of pairs"),
    ):
        with pytest.raises(InputError, match=message):
            Settings(path=str(tmp_path / name)).judged()
    path = table(tmp_path / "pairs.jsonl", [{"query": "q", "positive": 3.5}])
    with pytest.raises(InputError, match=r"line 1: positive is 3\.5; expected text"):
        Settings(path=str(path)).load()
    (tmp_path / "cut.csv.gz").write_bytes(gzip.compress(TWO.encode())[:-4])
    with pytest.raises(InputError, match="cut.csv.gz cannot be read"):
        Settings(path=str(tmp_path / "cut.csv.gz")).load()


def test_the_size_of_a_long_table_is_estimated_from_its_first_rows(tmp_path):
    rows = [
        {"question": f"q {row // 2}", "answer": f"{row} " + "words " * 99} for row in range(3000)
    ]
    table(tmp_path / "train.csv", rows)
    passages, words, queries = Settings(path=str(tmp_path)).expected()
    assert passages == pytest.approx(3000, rel=0.1)
    assert (words, queries) == (100, {"train": 1500})


def test_column_names_in_any_case_and_the_ids_of_a_table_reach_the_passages(tmp_path):
    """Two answers on the page /b share its address."""
    path = tmp_path / "faq.csv"
    path.write_text("Question,Answer,URL\nwhat is tea,A drink.,/a\nwhy,Because.,/b\nhow,So.,/b\n")
    names = Settings(path=str(path), query="Question").load().passages["passage_id"].to_pylist()
    assert names[:2] == ["/a", "/b"]
    assert names[2].startswith("/b#") and len(names) == 3
