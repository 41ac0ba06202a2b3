"""Collections in files: valid files are read completely, and errors name file and line."""

import gzip
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


def test_a_damaged_archive_is_refused(tmp_path):
    path = beir_folder(tmp_path, **{"corpus.jsonl": None, "corpus.jsonl.gz": jsonl(CORPUS * 99)})
    packed = tmp_path / "corpus.jsonl.gz"
    for content in (packed.read_bytes()[:-20], jsonl(CORPUS).encode()):
        packed.write_bytes(content)
        with pytest.raises(InputError, match="corpus.jsonl.gz cannot be read"):
            beir.Settings(path=path).load()


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
