"""Collections in files: valid files are read completely, and errors name file and line."""

import gzip
import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

from cdmae.collections import relevant_queries
from cdmae.collections.sources import beir, msmarco
from cdmae.collections.store import read_passages, read_qrels, write_collection
from cdmae.errors import InputError

ROOT = Path(__file__).resolve().parents[2]
CORPUS = [
    {"_id": "p1", "title": "Tea", "text": "Tea is a drink."},
    {"_id": "p2", "title": "", "text": "Line one.\nLine\u2028two: caf\u00e9."},
    {"_id": 3, "text": "No title at all."},
    {"_id": "p4", "title": " ", "text": ""},
]
QUERIES = [
    {"_id": "q1", "text": "what is tea"},
    {"_id": "q2", "text": "unjudged"},
    {"_id": "q3", "text": "titles"},
]
QRELS = "query-id\tcorpus-id\tscore\nq3\t3\t2\nq1\tp1\t1\nq1\tp2\t0\nq1\tp4\t1\nq1\tp2\t0\n"


def jsonl(entries):
    return "".join(json.dumps(entry, ensure_ascii=False) + "\n" for entry in entries)


def write(folder, contents):
    """Write files of text or bytes; None omits a file."""
    for name, content in contents.items():
        if content is not None:
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            data = content if isinstance(content, bytes) else content.encode()
            path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return str(folder)


def beir_folder(folder, **changed):
    """Write a small valid collection with other contents of some files."""
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


def refused(module, path, **settings):
    """Return the message of the error for a folder."""
    with pytest.raises(InputError) as caught:
        module.Settings(path=path, **settings).load()
    return str(caught.value).replace(path + "/", "")


# --- sources --------------------------------------------------------------------------------------


def test_sources_answer_without_heavy_imports(tmp_path):
    entries = [{"source": "beir", "path": beir_folder(tmp_path)}, {"source": "pydocs"}]
    script = "import sys, json; from cdmae import collections; "
    script += "asked = map(collections.settings_of, json.loads(sys.argv[1])); "
    script += "[(entry.judged(), entry.depends(), entry.version(), entry.expected()) for entry in asked]; "
    script += "sys.exit(str({'numpy', 'pandas', 'pyarrow', 'torch'} & set(sys.modules)))"
    command = [sys.executable, "-c", script, json.dumps(entries)]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert said.stderr == "set()\n"


def test_an_error_of_the_job_names_the_entry_of_the_config(tmp_path):
    settings = {"source": "beir", "path": beir_folder(tmp_path, **{"queries.jsonl": ""})}
    script = importlib.import_module("workflow.scripts.collection")
    with pytest.raises(InputError, match=r"^collections.mine: .*queries.jsonl holds no queries"):
        script.main(collection="mine", settings=settings, output=tmp_path / "out")


# --- BEIR -----------------------------------------------------------------------------------------


def test_beir_is_read_completely(tmp_path):
    """Also with a byte order mark, numeric ids, Windows' line ends, no header, repeated lines."""
    changed = {"qrels/test.tsv": None, "qrels/test.tsv.gz": QRELS}
    changed["qrels/dev.tsv"] = "q2\tp1\t1\r\n\r\n"
    changed["corpus.jsonl"] = "\ufeff" + jsonl(CORPUS)
    settings = beir.Settings(path=beir_folder(tmp_path, **changed))
    assert settings.judged() == {"dev": True, "test": True}
    collection = settings.load()
    assert list(collection.rows()) == [
        ("p1", "Tea", "Tea is a drink."),
        ("p2", "", "Line one.\nLine\u2028two: caf\u00e9."),
        ("3", "", "No title at all."),
    ]
    assert collection.queries["test"].to_numpy().tolist() == [
        ["q1", "what is tea"],
        ["q3", "titles"],
    ]
    assert collection.queries["dev"]["query_id"].tolist() == ["q2"]
    judged = collection.qrels["test"].fillna("").to_numpy().tolist()  # p4 is without text
    assert judged == [["q3", "3", 2], ["q1", "p1", 1], ["q1", "p2", 0], ["q1", "", 1]]
    assert relevant_queries(collection) == {"dev": 1, "test": 2}
    assert collection.about["passages without text, dropped"] == 1
    files = ["corpus.jsonl", "dev.tsv", "queries.jsonl", "test.tsv.gz"]
    assert sorted(path.name for path in settings.depends()) == files


def test_beir_has_one_split_without_judgments_and_no_split_without_queries(tmp_path):
    asked = beir_folder(tmp_path / "asked", **{"qrels/test.tsv": None})
    settings = beir.Settings(path=asked, titles=False)
    assert settings.judged() == {"test": False}
    collection = settings.load()
    assert collection.passages["title"].to_pylist() == ["", "", ""]
    assert collection.queries["test"]["query_id"].tolist() == ["q1", "q2", "q3"]
    assert collection.qrels == {}
    alone = beir_folder(tmp_path / "alone", **{"qrels/test.tsv": None, "queries.jsonl": None})
    settings = beir.Settings(path=alone)
    assert settings.judged() == {}
    write_collection(tmp_path / "out", settings.load())
    assert len(read_passages(tmp_path / "out")) == 3


def test_some_judged_passages_may_be_absent_as_in_published_collections(tmp_path, capsys):
    """As in BEIR's evaluation, they count as relevant, and no run finds them."""
    corpus = [{"_id": f"p{row}", "text": "text"} for row in range(19)]
    lines = "".join(f"q1\tp{row}\t1\n" for row in range(20)) + "q9\tp1\t1\n"
    path = beir_folder(tmp_path, **{"corpus.jsonl": jsonl(corpus), "qrels/test.tsv": lines})
    collection = beir.Settings(path=path).load()
    counts = collection.about["read"]["test"]
    assert counts["judgments of unknown queries"] == 1
    assert counts["judgments of passages that are unknown or without text"] == 1
    write_collection(tmp_path / "out", collection)
    assert read_qrels(tmp_path / "out", "test")["passage"].tolist() == list(range(20))
    assert "they count as relevant, and every run misses them" in capsys.readouterr().err


GOOD = json.dumps(CORPUS[0]) + "\n"


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("corpus.jsonl", None, "holds no corpus.jsonl; expected a folder in BEIR's"),
        ("corpus.jsonl", '{"_id": "p1", "text": " "}', "corpus.jsonl holds no passages with text"),
        ("corpus.jsonl", GOOD + "{'_id': 1}\n", "corpus.jsonl, line 2: not JSON that can be read ("),
        ("corpus.jsonl", GOOD + "[1]\n", "corpus.jsonl, line 2: not a JSON object but list"),
        ("corpus.jsonl", GOOD + '{"_id": "p", "txt": "x"}', 'line 2: no column text, contents, content, passage, body; it has _id, txt'),
        ("corpus.jsonl", '{"_id": "", "text": "x"}', "line 1: _id or id or docid"),
        ("corpus.jsonl", '{"_id": true, "text": "x"}', "line 1: _id is true; expected text"),
        ("corpus.jsonl", '{"_id": "p\\u001b[2J", "text": "x"}\n' * 2, r"line 2: the id p\x1b[2J is repeated"),
        ("corpus.jsonl", GOOD.encode() + b'{"_id": "p2", "text": "caf\xe9"}', "corpus.jsonl, line 2: not UTF-8"),
        ("corpus.jsonl.gz", GOOD, "holds both corpus.jsonl and corpus.jsonl.gz; keep one of them"),
        ("queries.jsonl", None, "holds judgments but no queries.jsonl"),
        ("queries.jsonl", '{"_id": "q1", "text": ""}', "queries.jsonl, line 1: text or query is missing or empty"),
        ("queries.jsonl", jsonl(QUERIES * 2), "queries.jsonl, line 4: the id q1 is repeated"),
        ("qrels/test.tsv", "q1\tp1\t0\nq3\tp2\t-1\n", "qrels/test.tsv marks no passage as relevant for split test"),
        ("qrels/test.tsv", "q9\tp1\t1\n" * 3, "qrels/test.tsv, line 1: query q9, passage p1: not in queries.jsonl"),
        ("qrels/test.tsv", "q1\tp1\t1\nq1\tp8\t1\nq1\tp9\t1\n", "line 2: query q1, passage p8: not in corpus.jsonl"),
        ("qrels/test.tsv", QRELS + "q2\tp1\thigh\n", "line 7: grade has high; expected finite numbers"),
        ("qrels/test.tsv", QRELS + "q2\tp1\t99999\n", "the grade is 99999; expected a whole number from -32767 "),
        ("qrels/test.tsv", "q1\tp1\t0.5\n", "line 1: the grade is 0.5"),
        ("qrels/test.tsv", "q1 p1\n", "line 1: 2 columns; expected query id, passage id and grade, or the four columns of TREC"),
    ],
)  # fmt: skip
def test_beir_errors_name_file_line_and_content(tmp_path, name, content, message):
    assert message in refused(beir, beir_folder(tmp_path, **{name: content}))


def test_a_damaged_archive_is_refused(tmp_path):
    path = beir_folder(tmp_path, **{"corpus.jsonl": None, "corpus.jsonl.gz": jsonl(CORPUS * 99)})
    packed = tmp_path / "corpus.jsonl.gz"
    for content in (packed.read_bytes()[:-20], jsonl(CORPUS).encode()):
        packed.write_bytes(content)
        assert "corpus.jsonl.gz cannot be read (" in refused(beir, path)


@pytest.mark.parametrize("name", ["qrels", "qrels.tsv", "qrels/test.txt"])
def test_judgments_in_another_layout_are_refused(tmp_path, name):
    path = beir_folder(tmp_path, **{"qrels/test.tsv": None, name: QRELS})
    assert "holds qrels in another layout; expected qrels/{split}.tsv" in refused(beir, path)


@pytest.mark.parametrize("module", [beir, msmarco])
def test_a_path_that_is_not_a_folder_is_refused(tmp_path, module):
    (tmp_path / "file").touch()
    for name in ("nowhere", "file"):
        assert "cannot be read" in refused(module, str(tmp_path / name))


# --- MS MARCO -------------------------------------------------------------------------------------


def test_msmarco_is_read_completely(tmp_path):
    settings = msmarco.Settings(path=msmarco_folder(tmp_path))
    assert settings.judged() == {"dl19": True, "eval": False, "train": True}
    collection = settings.load()
    assert list(collection.rows())[1] == ("1", "", 'second "passage')
    ids = {split: frame["query_id"].tolist() for split, frame in collection.queries.items()}
    assert ids == {"dl19": ["30"], "eval": ["20"], "train": ["10"]}
    assert collection.qrels["dl19"].to_numpy().tolist() == [["30", "0", 3], ["30", "1", 0]]
    assert len(settings.depends()) == 6


def test_msmarco_titles_need_three_columns(tmp_path):
    lines = "0\tTea\ta drink\n1\t-\tx\n2\t\ty\n"
    path = msmarco_folder(tmp_path, **{"collection.tsv": lines})
    for titles, expected in ((True, ["Tea", "-", ""]), (False, ["", "", ""])):
        passages = msmarco.Settings(path=path, titles=titles).load().passages
        assert passages["title"].to_pylist() == expected
        assert passages["text"].to_pylist() == ["a drink", "x", "y"]
    msmarco_folder(tmp_path, **{"collection.tsv": "0\tTea\n"})
    assert "expected passage_id, title, text" in refused(msmarco, path, titles=True)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("collection.tsv", None, "holds no collection.tsv"),
        ("collection.tsv", "0\ta\n1 b\n", "line 2: another number of columns; expected passage_id, text"),
        ("collection.tsv", "docno\ttext\n0\ta\n", "collection.tsv, line 1: a header (docno, text); delete the line"),
        ("queries.train.tsv", None, "qrels.train.tsv has no queries; expected queries.train.tsv"),
        ("qrels.train.tsv", "10\t0\t7\t1\n", "line 1: query 10, passage 7: not in collection.tsv"),
    ],
)  # fmt: skip
def test_msmarco_errors_name_file_line_and_content(tmp_path, name, content, message):
    assert message in refused(msmarco, msmarco_folder(tmp_path, **{name: content}))
