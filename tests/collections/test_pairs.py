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
TEVATRON = [
    {
        "query_id": "q1",
        "query": "what is tea",
        "positive_passages": [
            {"docid": "p1", "title": "Tea", "text": TEA},
            {"docid": "p2", "title": "", "text": CHINA},
        ],
        "negative_passages": [
            {"docid": "p3", "title": "", "text": COFFEE},
            {"docid": "p4", "title": "", "text": OLD},
        ],
    },
    {
        "query_id": "q2",
        "query": "what is coffee",
        "positive_passages": [{"docid": "p3", "title": "", "text": COFFEE}],
        "negative_passages": [
            {"docid": "p4", "title": "", "text": OLD},
            {"docid": "p1", "title": "Tea", "text": TEA},
        ],
    },
]
FLAG = [
    {
        "query": "what is tea", "pos": [TEA, CHINA], "neg": [COFFEE, OLD],
        "pos_scores": [9, 8], "neg_scores": [1, 2],
    },
    {
        "query": "what is coffee", "pos": [COFFEE], "neg": [OLD, TEA], "pos_scores": [7],
        "neg_scores": [-1, -2],
    },
]  # fmt: skip


def jsonl(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def table(path, rows):
    """Write a table in the format of the file's suffix; lists in CSV and TSV are JSON."""
    if path.suffix == ".jsonl":
        return jsonl(path, rows)
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
        return path
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, rows[0], delimiter="," if path.suffix == ".csv" else "\t")
        writer.writeheader()
        for row in rows:
            cells = {
                key: json.dumps(cell) if isinstance(cell, list) else cell
                for key, cell in row.items()
            }
            writer.writerow(cells)
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
    passages = read_passages(folder)
    queries = read_queries(folder, "train")
    run = pair_run.read_run(path, queries, passages, 100, {"query": "", "positive": ""})
    names = passages["text"].to_pylist()
    return {
        text: dict(zip([names[i] for i in run.ranked(row)[0]], run.ranked(row)[1].tolist(), strict=True))
        for row, text in enumerate(queries["text"])
    }  # fmt: skip


@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".tsv", ".parquet"])
@pytest.mark.parametrize(
    "rows", [SENTENCE_TRANSFORMERS, TEVATRON, FLAG], ids=["sbert", "tevatron", "flag"]
)
def test_the_columns_of_three_libraries_give_the_same_collection(tmp_path, rows, suffix):
    path = table(tmp_path / f"pairs{suffix}", rows)
    collection = Settings(path=str(path)).load()
    assert write_collection(tmp_path / "out", collection) == 4
    assert texts(tmp_path / "out") == {
        "what is tea": {TEA, CHINA},
        "what is coffee": {COFFEE},
    }


def test_ids_and_titles_of_the_table_are_kept(tmp_path):
    path = jsonl(tmp_path / "pairs.jsonl", TEVATRON)
    write_collection(tmp_path / "out", Settings(path=str(path)).load())
    passages = read_passages(tmp_path / "out").to_pylist()
    assert passages[0] == {"passage_id": "p1", "title": "Tea", "text": TEA}
    assert read_queries(tmp_path / "out", "train")["query_id"].tolist() == ["q1", "q2"]
    write_collection(tmp_path / "plain", Settings(path=str(path), titles=False).load())
    assert set(read_passages(tmp_path / "plain")["title"].to_pylist()) == {""}


def test_a_corpus_adds_passages_and_gives_ids_to_equal_texts(tmp_path):
    path = jsonl(tmp_path / "pairs.jsonl", SENTENCE_TRANSFORMERS)
    corpus = jsonl(
        tmp_path / "corpus.jsonl",
        [{"_id": "7", "text": f" {COFFEE} "}, {"_id": "8", "title": "More", "text": "Milk."}],
    )
    write_collection(tmp_path / "out", Settings(path=str(path), corpus=str(corpus)).load())
    passages = read_passages(tmp_path / "out").to_pylist()
    assert len(passages) == 5
    assert [passage["passage_id"] for passage in passages[:2]] == ["7", "8"]
    assert texts(tmp_path / "out")["what is coffee"] == {f" {COFFEE} "}


def test_a_folder_has_a_table_per_split(tmp_path):
    folder = tmp_path / "pairs"
    folder.mkdir()
    jsonl(folder / "train.jsonl", SENTENCE_TRANSFORMERS[:2])
    table(folder / "dev.csv", SENTENCE_TRANSFORMERS[2:])
    settings = Settings(path=str(folder))
    assert settings.judged() == {"dev": True, "train": True}
    assert [path.name for path in settings.depends()] == ["dev.csv", "train.jsonl"]
    write_collection(tmp_path / "out", settings.load())
    assert texts(tmp_path / "out", "dev") == {"what is coffee": {COFFEE}}


def test_a_split_may_have_several_tables(tmp_path):
    folder = tmp_path / "pairs"
    folder.mkdir()
    for number, row in enumerate(SENTENCE_TRANSFORMERS):
        table(folder / f"train-0000{number}-of-00003.parquet", [row])
    settings = Settings(path=str(folder))
    assert settings.judged() == {"train": True} and len(settings.depends()) == 3
    write_collection(tmp_path / "out", settings.load())
    assert texts(tmp_path / "out") == {"what is tea": {TEA, CHINA}, "what is coffee": {COFFEE}}
    jsonl(folder / "train.jsonl", SENTENCE_TRANSFORMERS)
    with pytest.raises(InputError, match="holds both train-00000-of-00003.parquet and train.jsonl"):
        settings.judged()


def test_a_label_of_0_is_a_judgment_that_the_passage_is_not_relevant(tmp_path):
    rows = [
        {"query": "tea", "positive": TEA, "label": 1},
        {"query": "tea", "positive": COFFEE, "label": 0},
    ]
    path = table(tmp_path / "pairs.csv", rows)
    write_collection(tmp_path / "out", Settings(path=str(path)).load())
    assert texts(tmp_path / "out") == {"tea": {TEA}}
    assert sorted(read_qrels(tmp_path / "out", "train")["grade"]) == [0, 1]


def test_held_out_queries_share_no_text_and_no_positive(tmp_path):
    """Query i shares its positive with query i + 1 in pairs, and its text with another row."""
    rows = [{"query": f"number {i // 4}", "positive": f"text {i // 2}"} for i in range(400)]
    path = table(tmp_path / "pairs.csv", rows)
    shares = {"dev": 0.1, "test": 0.1}
    settings = Settings(path=str(path), holdout=shares)
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        write_collection(folder, settings.load())
    found = {split: texts(folders[0], split) for split in ("train", "dev", "test")}
    assert [len(queries) for queries in found.values()] == [80, 10, 10]
    positives = [set().union(*queries.values()) for queries in found.values()]
    assert (
        not positives[0] & positives[1] | positives[0] & positives[2] | positives[1] & positives[2]
    )
    assert texts(folders[1], "dev") == found["dev"], "seeded"
    other = Settings(path=str(path), holdout=shares, holdout_seed=1)
    write_collection(tmp_path / "other", other.load())
    assert texts(tmp_path / "other", "dev") != found["dev"]


# --- given negatives and scores -------------------------------------------------------------------


def test_the_negatives_of_a_table_are_a_run(tmp_path):
    path = jsonl(tmp_path / "pairs.jsonl", TEVATRON)
    write_collection(tmp_path / "out", Settings(path=str(path)).load())
    run = given(tmp_path / "out", path)
    assert list(run["what is tea"]) == [COFFEE, OLD]
    assert list(run["what is coffee"]) == [OLD, TEA]


def test_the_scores_of_a_table_are_a_run_with_the_positives(tmp_path):
    path = jsonl(tmp_path / "pairs.jsonl", FLAG)
    write_collection(tmp_path / "out", Settings(path=str(path)).load())
    run = given(tmp_path / "out", path)
    assert run["what is tea"] == {TEA: 9, CHINA: 8, OLD: 2, COFFEE: 1}
    assert run["what is coffee"] == {COFFEE: 7, OLD: -1, TEA: -2}


@pytest.mark.parametrize(
    ("label", "expected"),
    [([3.0, 1.0, 2.0], {TEA: 3, OLD: 2, COFFEE: 1}), ([0.5, 0.25], {TEA: 0, OLD: -0.25, COFFEE: -0.5})],
)  # fmt: skip
def test_a_label_with_negatives_has_scores_or_margins(tmp_path, label, expected):
    row = {"query": "tea", "positive": TEA, "negative_1": COFFEE, "negative_2": OLD}
    path = table(tmp_path / "pairs.csv", [row | {"label": label}])
    write_collection(tmp_path / "out", Settings(path=str(path)).load())
    assert given(tmp_path / "out", path)["tea"] == expected


# --- mistakes -------------------------------------------------------------------------------------

TWO = "query,positive\nq,p\n"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a,b\nq,p\n", "pairs.csv lacks the query column any of anchor, query, question; it has a, b"),
        ("query,b\nq,p\n", "pairs.csv lacks the positive column any of "),
        ("query,anchor,positive\nq,a,p\n", "pairs.csv has several query columns: anchor, query"),
        ("question;answer\nq;a\n", "pairs.csv, line 1: one column, question;answer"),
        (TWO + "q\n", "pairs.csv, line 3: the header has 2 columns, and this row has not"),
        (TWO + '"two\nlines",p\n"",p\n', 'pairs.csv, line 5: query is missing or empty; it has query, positive'),
        (TWO + "q,\n", "pairs.csv, line 3: positive has no passage; expected at least one"),
        ("query,positive,label\nq,p,.5\n", "pairs.csv, line 2: label is .5; expected 0 or 1"),
        ("query,positive,negative,label\nq,p,n,x\n", "pairs.csv, line 2: label has x; expected finite"),
        ('query,pos,neg,pos_scores\nq,p,n,"[1]"\n', "pairs.csv, line 2: 1 scores for 2 passages"),
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


def test_other_mistakes(tmp_path):
    with pytest.raises(InputError, match="is not a file"):
        Settings(path=str(tmp_path / "none.csv")).judged()
    (tmp_path / "pairs.xlsx").write_text("")
    with pytest.raises(InputError, match="expected a table"):
        Settings(path=str(tmp_path / "pairs.xlsx")).judged()
    with pytest.raises(InputError, match="holds no table of pairs"):
        Settings(path=str(tmp_path)).judged()
    path = jsonl(tmp_path / "pairs.jsonl", [{"query": "q", "positive": 3.5}])
    with pytest.raises(InputError, match=r"line 1: positive is 3\.5; expected text"):
        Settings(path=str(path)).load()
    rows = [{"query": "q", "positive_passages": [{"docid": "1", "text": text}]} for text in "ab"]
    path = jsonl(tmp_path / "pairs.jsonl", rows)
    with pytest.raises(InputError, match="line 2: the id 1 already belongs to another text"):
        Settings(path=str(path)).load()
    with gzip.open(tmp_path / "cut.csv.gz", "wt") as file:
        file.write(TWO)
    packed = (tmp_path / "cut.csv.gz").read_bytes()
    (tmp_path / "cut.csv.gz").write_bytes(packed[:-4])
    with pytest.raises(InputError, match="cut.csv.gz cannot be read"):
        Settings(path=str(tmp_path / "cut.csv.gz")).load()


def test_the_size_of_a_long_table_is_estimated_from_its_first_rows(tmp_path):
    with open(tmp_path / "train.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["question", "answer"])
        for row in range(3000):
            writer.writerow([f"q {row // 2}", f"{row} " + "words " * 99])
    passages, words, queries = Settings(path=str(tmp_path)).expected()
    assert passages == pytest.approx(3000, rel=0.1)
    assert (words, queries) == (100, {"train": 1500})


# --- ids ------------------------------------------------------------------------------------------


def test_column_names_in_any_case_and_the_ids_of_a_table_reach_the_passages(tmp_path):
    """Two answers on the page /b share its address."""
    path = tmp_path / "faq.csv"
    path.write_text("Question,Answer,URL\nwhat is tea,A drink.,/a\nwhy,Because.,/b\nhow,So.,/b\n")
    write_collection(tmp_path / "out", Settings(path=str(path), query="Question").load())
    names = read_passages(tmp_path / "out")["passage_id"].to_pylist()
    assert names[:2] == ["/a", "/b"]
    assert names[2].startswith("/b#") and len(names) == 3
    rows = jsonl(
        tmp_path / "faq.jsonl", [{"Query": "what is tea", "Positive": "A drink.", "ID": 7}]
    )
    passages = Settings(path=str(rows)).load().passages
    assert passages["passage_id"].to_pylist() == ["7"]
