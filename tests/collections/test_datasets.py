"""Collections in files: valid files are read completely, and errors name file and line."""

import gzip
import importlib
import json
import random
import subprocess
import sys
from pathlib import Path

import pytest

from cdmae import collections
from cdmae.collections import Counts, counts
from cdmae.collections.sources import beir, msmarco
from cdmae.collections.store import read_passages, read_qrels, write_collection
from cdmae.errors import InputError

ROOT = Path(__file__).resolve().parents[2]
CORPUS = [
    {"_id": "p1", "title": "Tea", "text": "Tea is a drink."},
    {"_id": "p2", "title": "", "text": "Line one.\nLine\u2028two: caf\u00e9."},
    {"_id": "p3", "text": "No title at all."},
    {"_id": "p4", "title": " ", "text": ""},
]
QUERIES = [
    {"_id": "q1", "text": "what is tea"},
    {"_id": "q2", "text": "unjudged"},
    {"_id": "q3", "text": "titles"},
]
QRELS = "query-id\tcorpus-id\tscore\nq3\tp3\t2\nq1\tp1\t1\nq1\tp2\t0\nq1\tp4\t1\n"


def jsonl(entries):
    return "".join(json.dumps(entry, ensure_ascii=False) + "\n" for entry in entries)


def beir_folder(folder, **changed):
    """Write a small valid collection; `changed` replaces files by text or bytes, or omits them (None)."""
    contents = {
        "corpus.jsonl": jsonl(CORPUS),
        "queries.jsonl": jsonl(QUERIES),
        "qrels/test.tsv": QRELS,
    }
    return write(folder, contents | changed)


def msmarco_folder(folder, **changed):
    contents = {
        "collection.tsv": '0\tfirst passage\n1\tsecond "passage\n2\tthird\n',
        "queries.train.tsv": "10\tone\n11\ttwo\n",
        "qrels.train.tsv": "10\t0\t2\t1\n",
        "queries.eval.tsv": "20\tunjudged\n",
        "queries.dl19.tsv": "30\tdeep learning\n31\tnot judged\n",
        "qrels.dl19.tsv": "30 Q0 0 3\n30 Q0 1 0\n",
    }
    return write(folder, contents | changed)


def gzipped(data):
    """Compress without the time stamp, which would change the names of tests."""
    return gzip.compress(data, mtime=0)


def write(folder, contents):
    for name, content in contents.items():
        if content is not None:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            data = content if isinstance(content, bytes) else content.encode()
            path.write_bytes(
                gzipped(data) if name.endswith(".gz") and not isinstance(content, bytes) else data
            )
    return str(folder)


def refused(module, path, **settings):
    """Return the message of the error for a folder."""
    with pytest.raises(InputError) as caught:
        counts(module.Settings(path=path, **settings).load())
    return str(caught.value).replace(path + "/", "")


# --- sources --------------------------------------------------------------------------------------


def test_an_unknown_source_is_refused_with_the_known_names():
    message = "trec is not a source of collections; expected beir, expanded, ir_datasets, .*, text"
    with pytest.raises(InputError, match=message):
        collections.source("trec")


def test_sources_answer_without_heavy_imports(tmp_path):
    entries = [("beir", {"path": beir_folder(tmp_path)}), ("pydocs", {"size": "smoke"})]
    script = "import sys, json; from cdmae import collections; "
    script += "asked = [collections.source(name).Settings(**own) for name, own in json.loads(sys.argv[1])]; "
    script += "[(entry.judged(), entry.depends(), entry.version(), entry.expected()) for entry in asked]; "
    script += "sys.exit(str({'numpy', 'pandas', 'pyarrow', 'torch'} & set(sys.modules)))"
    command = [sys.executable, "-c", script, json.dumps(entries)]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert said.stderr == "set()\n"


@pytest.mark.parametrize(
    ("key", "quantity", "most", "words"),
    [
        ("stages.stage2.queries", "queries", 2, "queries of {}, split train, that have a relevant"),
        ("stages.stage2.group", "passages", 3, "passages of {}"),
        ("evaluation.relevant.mine.train", "grade", 2, "highest grade of {}, split train"),
    ],
)
def test_a_collection_with_too_little_for_the_config_is_refused_by_its_job(
    tmp_path, key, quantity, most, words
):
    """Two of three judged queries have a relevant passage."""
    qrels = QRELS + "q2\tp1\t0\n"
    settings = {
        "source": "beir",
        "path": beir_folder(tmp_path / "in", **{"qrels/train.tsv": qrels}),
    }
    script = importlib.import_module("workflow.scripts.collection")

    def make(number):
        needed = {"stages.stage1.queries": ["queries", "train", 1]}
        needed[key] = [quantity, "train", number]
        output = tmp_path / "out/passages.parquet"
        script.main(collection="mine", settings=settings, needed=needed, output=output)

    with pytest.raises(InputError) as refused:
        make(most + 1)
    said = f"{key} is {most + 1}; expected up to {most}, the {words.format('collections.mine')}"
    assert str(refused.value).startswith(said)
    make(most)
    assert (tmp_path / "out/passages.parquet").exists()


# --- BEIR -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["", ".gz"])
def test_beir_is_read_completely(tmp_path, suffix):
    changed = {"corpus.jsonl": None, "queries.jsonl": None, "qrels/test.tsv": None}
    changed |= {f"corpus.jsonl{suffix}": jsonl(CORPUS), f"queries.jsonl{suffix}": jsonl(QUERIES)}
    changed |= {
        f"qrels/test.tsv{suffix}": QRELS,
        "qrels/dev.tsv": "query-id\tcorpus-id\tscore\r\nq2\tp1\t1\r\n\r\n",
    }
    settings = beir.Settings(path=beir_folder(tmp_path, **changed))
    assert settings.judged() == {"dev": True, "test": True}
    assert counts(settings.load()) == Counts(3, {"dev": (1, 1), "test": (2, 2)})
    collection = settings.load()
    assert collection.passages.to_pylist() == [
        {"passage_id": "p1", "title": "Tea", "text": "Tea is a drink."},
        {"passage_id": "p2", "title": "", "text": "Line one.\nLine\u2028two: caf\u00e9."},
        {"passage_id": "p3", "title": "", "text": "No title at all."},
    ]
    assert collection.queries["test"].to_dict("list") == {
        "query_id": ["q1", "q3"],
        "text": ["what is tea", "titles"],
    }
    assert collection.queries["dev"]["query_id"].tolist() == ["q2"]
    judged = collection.qrels["test"].fillna("").to_numpy().tolist()  # p4 is without text
    assert judged == [["q3", "p3", 2], ["q1", "p1", 1], ["q1", "p2", 0], ["q1", "", 1]]
    assert collection.about == {
        "source": "beir", "titles": True, "passages": 3, "passages without text, dropped": 1,
        "queries": {
            "dev": {"read": 3, "judgments read": 1, "judgments of dropped passages": 0, "judged": 1, "judgments": 1},
            "test": {"read": 3, "judgments read": 4, "judgments of dropped passages": 1, "judged": 2, "judgments": 4},
        },
    }  # fmt: skip
    files = [f"corpus.jsonl{suffix}", "dev.tsv", f"queries.jsonl{suffix}", f"test.tsv{suffix}"]
    assert sorted(path.name for path in settings.depends()) == files


def test_beir_has_one_split_without_judgments_and_no_split_without_queries(tmp_path):
    settings = beir.Settings(
        path=beir_folder(tmp_path / "asked", **{"qrels/test.tsv": None}), titles=False
    )
    assert settings.judged() == {"test": False}
    collection = settings.load()
    assert collection.passages["title"].to_pylist() == ["", "", ""]
    assert collection.queries["test"]["query_id"].tolist() == ["q1", "q2", "q3"]
    assert collection.qrels == {}
    settings = beir.Settings(
        path=beir_folder(tmp_path / "alone", **{"qrels/test.tsv": None, "queries.jsonl": None})
    )
    assert settings.judged() == {}
    write_collection(tmp_path / "out", settings.load())
    assert len(read_passages(tmp_path / "out")) == 3


def test_beir_accepts_a_byte_order_mark_numeric_ids_and_a_missing_header(tmp_path):
    corpus = b"\xef\xbb\xbf" + b'{"_id": 1, "text": "one"}\r\n{"_id": 2, "text": "two"}\r\n\n'
    changed = {
        "corpus.jsonl": corpus,
        "queries.jsonl": '{"_id": 1, "text": "q"}',
        "qrels/test.tsv": "1\t2\t1\n",
    }
    collection = beir.Settings(path=beir_folder(tmp_path, **changed)).load()
    assert collection.passages["text"].to_pylist() == ["one", "two"]
    assert collection.qrels["test"].to_numpy().tolist() == [["1", "2", 1]]


def test_a_few_judged_passages_may_be_absent_as_in_published_collections(tmp_path, capsys):
    """As in BEIR's evaluation, they count as relevant, and no run finds them."""
    corpus = [{"_id": f"p{row}", "text": "text"} for row in range(19)]
    lines = "".join(f"q1\tp{row}\t1\n" for row in range(20)) + "q9\tp1\t1\n"
    path = beir_folder(tmp_path, **{"corpus.jsonl": jsonl(corpus), "qrels/test.tsv": lines})
    collection = beir.Settings(path=path).load()
    counts = collection.about["queries"]["test"]
    assert (counts["judgments of unknown passages"], counts["judgments of unknown queries"]) == (
        1,
        1,
    )
    write_collection(tmp_path / "out", collection)
    assert read_qrels(tmp_path / "out", "test")["passage"].tolist() == list(range(20))
    assert "they count as relevant, and every run misses them" in capsys.readouterr().err


GOOD = json.dumps(CORPUS[0]) + "\n"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("corpus.jsonl", None, "holds no corpus.jsonl; expected a folder in BEIR's"),
        ("corpus.jsonl", "", "corpus.jsonl holds no passages"),
        ("corpus.jsonl", '{"_id": "p1", "text": " "}', "corpus.jsonl holds no passages: no passage has any text"),
        ("corpus.jsonl", GOOD + "{'_id': 1}\n", "corpus.jsonl, line 2: not JSON that can be read ("),
        ("corpus.jsonl", GOOD + "[1]\n", "corpus.jsonl, line 2: not a JSON object but list"),
        ("corpus.jsonl", GOOD + '{"_id": "p", "txt": "x"}', 'line 2: no column text, contents, content, passage, body; it has _id, txt'),
        ("corpus.jsonl", '{"_id": "", "text": "x"}', "line 1: _id or id or docid"),
        ("corpus.jsonl", '{"_id": true, "text": "x"}', "line 1: _id is true; expected text"),
        ("corpus.jsonl", '{"_id": "p", "title": 3.5, "text": "x"}', "line 1: title is 3.5; expected text"),
        ("corpus.jsonl", '{"_id": "p", "text": "\\ud83d"}', "line 1: text contains half a surrogate pair"),
        ("corpus.jsonl", '{"_id": "p\\u001b[2J", "text": "x"}\n' * 2, r"line 2: the id p\x1b[2J is already on line 1"),
        ("corpus.jsonl", GOOD * 2, "corpus.jsonl, line 2: the id p1 is already on line 1"),
        ("corpus.jsonl", GOOD.encode() + b'{"_id": "p2", "text": "caf\xe9"}', "line 2 is not UTF-8 (byte 0xe9)"),
        ("corpus.jsonl.gz", GOOD, "holds both corpus.jsonl and corpus.jsonl.gz; keep one of them"),
        ("queries.jsonl", None, "holds judgments but no queries.jsonl"),
        ("queries.jsonl", "", "queries.jsonl holds no queries"),
        ("queries.jsonl", '{"_id": "q1", "text": ""}', "queries.jsonl, line 1: text or query is missing or empty"),
        ("queries.jsonl", jsonl(QUERIES * 2), "queries.jsonl, line 4: the id q1 is already on line 1"),
        ("qrels/test.tsv", "", "qrels/test.tsv holds no judgments"),
        ("qrels/test.tsv", "q1\tp1\t0\nq3\tp2\t-1\n",
         "qrels/test.tsv marks no passage as relevant for split test: the highest grade is 0; expected judgments with a "),
        ("qrels/test.tsv", QRELS + "q9\tp1\t1\n", "qrels/test.tsv, line 6: query q9, passage p1: the query is not in queries.jsonl"),
        ("qrels/test.tsv", QRELS + "q2\tp9\t1\n", "qrels/test.tsv, line 6: query q2, passage p9: the passage is not in corpus.jsonl"),
        ("qrels/test.tsv", QRELS + "q1\tp1\t0\n", "line 6: query q1, passage p1: the judgment is repeated"),
        ("qrels/test.tsv", QRELS + "q2\tp1\thigh\n", "line 6: the grade is high; expected a whole number"),
        ("qrels/test.tsv", QRELS + "q2\tp1\t99999\n", "the grade is 99999; expected a whole number from -32768 "),
        ("qrels/test.tsv", "q1\tp1\t0.5\n", "line 1: the grade is 0.5"),
        ("qrels/test.tsv", "q1 p1\n", "line 1: 2 columns; expected query id, passage id and grade, or the four columns of TREC"),
    ],
)  # fmt: skip
def test_beir_errors_name_file_line_and_content(tmp_path, name, content, message):
    assert message in refused(beir, beir_folder(tmp_path, **{name: content}))


def test_a_truncated_archive_is_refused(tmp_path):
    whole = gzip.compress(
        jsonl({"_id": str(i), "text": str(random.Random(i).random())} for i in range(2000)).encode()
    )
    path = beir_folder(
        tmp_path, **{"corpus.jsonl": None, "corpus.jsonl.gz": whole[: len(whole) // 2]}
    )
    assert "corpus.jsonl.gz cannot be read (" in refused(beir, path)
    (tmp_path / "corpus.jsonl.gz").write_bytes(jsonl(CORPUS).encode())
    assert "corpus.jsonl.gz cannot be read (" in refused(beir, path)


@pytest.mark.parametrize("name", ["qrels", "qrels.tsv", "qrels/test.txt"])
def test_judgments_in_another_layout_are_refused(tmp_path, name):
    path = beir_folder(tmp_path, **{"qrels/test.tsv": None, name: QRELS})
    assert "holds qrels in another layout; expected qrels/{split}.tsv" in refused(beir, path)


@pytest.mark.parametrize("module", [beir, msmarco])
@pytest.mark.parametrize("path", [" ", "nowhere", "file"])
def test_a_path_that_is_not_a_folder_is_refused(tmp_path, monkeypatch, module, path):
    monkeypatch.chdir(tmp_path)
    Path("file").touch()
    assert "cannot be read" in refused(module, path)


# --- MS MARCO -------------------------------------------------------------------------------------


def test_msmarco_is_read_completely(tmp_path):
    settings = msmarco.Settings(path=msmarco_folder(tmp_path))
    assert settings.judged() == {"dl19": True, "eval": False, "train": True}
    collection = settings.load()
    assert collection.passages.to_pylist()[1] == {
        "passage_id": "1",
        "title": "",
        "text": 'second "passage',
    }
    ids = {split: frame["query_id"].tolist() for split, frame in collection.queries.items()}
    assert ids == {"dl19": ["30"], "eval": ["20"], "train": ["10"]}
    assert collection.qrels["dl19"].to_numpy().tolist() == [["30", "0", 3], ["30", "1", 0]]
    counts = {
        "read": 2,
        "judgments read": 1,
        "judgments of dropped passages": 0,
        "judged": 1,
        "judgments": 1,
    }
    assert collection.about["queries"]["train"] == counts
    assert len(settings.depends()) == 6


def test_msmarco_titles_need_three_columns(tmp_path):
    path = msmarco_folder(
        tmp_path / "titled", **{"collection.tsv": "0\tTea\ta drink\n1\t-\tx\n2\t\ty\n"}
    )
    settings = (msmarco.Settings(path=path, titles=titles) for titles in (True, False))
    with_titles, without = (chosen.load().passages for chosen in settings)
    assert with_titles["title"].to_pylist() == ["Tea", "-", ""]
    assert without["title"].to_pylist() == ["", "", ""]
    assert without["text"].equals(with_titles["text"])
    for columns, line in ((2, "0\tTea\n"), (4, "0\tTea\ta\tdrink\n")):
        path = msmarco_folder(tmp_path / str(columns), **{"collection.tsv": line})
        message = f"collection.tsv, line 1: {columns} columns separated by tabs; expected passage_id, title, text"
        assert message in refused(msmarco, path, titles=True)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("collection.tsv", None, "holds no collection.tsv"),
        ("collection.tsv", "0\ta\n1 b\n", "line 2: 1 columns separated by tabs; expected passage_id, text"),
        ("collection.tsv", "0\ta\tb\tc\n", "collection.tsv, line 1: 4 columns"),
        ("collection.tsv", "0\ta\n1\tb\tc\n", "line 2: 3 columns separated by tabs; expected passage_id, text"),
        ("collection.tsv", "\ta\n", "collection.tsv, line 1: _id or id or "),
        ("collection.tsv", "pid\ttext\n0\ta\n", "collection.tsv, line 1: a header (pid, text); delete the line"),
        ("collection.tsv", "docno\ttext\n0\ta\n", "collection.tsv, line 1: a header"),
        ("collection.tsv", "0\ta\n0\tb\n", "collection.tsv, line 2: the id 0 is already on line 1"),
        ("queries.train.tsv", None, "qrels.train.tsv has no queries; expected queries.train.tsv"),
        ("queries.train.tsv", "10\tone\ttwo\n", "queries.train.tsv, line 1: 3 columns"),
        ("qrels.train.tsv", "10\t0\t2\tyes\n", "qrels.train.tsv, line 1: the grade is yes"),
        ("qrels.train.tsv", "10\t0\t7\t1\n", "line 1: query 10, passage 7: the passage is not in collection.tsv"),
        ("qrels.train.tsv", "30\t0\t2\t1\n", "line 1: query 30, passage 2: the query is not in queries.train.tsv"),
    ],
)  # fmt: skip
def test_msmarco_errors_name_file_line_and_content(tmp_path, name, content, message):
    assert message in refused(msmarco, msmarco_folder(tmp_path, **{name: content}))
