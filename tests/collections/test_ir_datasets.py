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
from pathlib import Path

import ir_measures
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import requests

from cdmae import collections
from cdmae.collections.store import read_passages, read_qrels, read_queries, write_collection
from cdmae.config.reading import read_yaml
from cdmae.errors import InputError
from cdmae.evaluation.measures import measure
from cdmae.fields import parse
from cdmae.files import read_json
from cdmae.retrieval import targets
from cdmae.runs import Run

CONFIG = Path(__file__).resolve().parents[2] / "config"
source = collections.source("ir_datasets")
MSMARCO = {
    "dataset": "msmarco-passage",
    "splits": {
        "train": "train",
        "dev": "dev/small",
        "dl19": "trec-dl-2019",
        "dl20": "trec-dl-2020",
    },
}
# mojibake, as in the release
COLLECTION = "0\tTea is a drink.\n1\tSo is caf\u00c3\u00a9 au lait.\n2\tBread is not.\n"
CORPUS = [
    {"_id": "doc0", "title": "Tea", "text": "Tea is a drink."},
    {"_id": "q1", "title": "", "text": "what is  tea"},
    {"_id": "doc2", "title": "", "text": ""},
]
NANO = {"nq": "NanoNQ", "arguana": "NanoArguAna"}  # set: its folder at the hub
PARTS = ("docs", "queries", "qrels")
COUNTS = {  # by part
    "dpr-w100": (2,),
    "msmarco-passage": (3,),
    "msmarco-passage/train": (None, 2, 1),
    "msmarco-passage/train/judged": (None, 1),
    "msmarco-passage/dev/small": (None, 1, 1),
    "msmarco-passage/trec-dl-2019": (None, 2, 2),
    "msmarco-passage/trec-dl-2019/judged": (None, 1),
    "msmarco-passage/trec-dl-2020": (None, 1, 1),
    "msmarco-passage/trec-dl-2020/judged": (None, 1),
    **dict.fromkeys(("beir/nq", "beir/cqadupstack/tex", "beir/webis-touche2020/v2"), (3, 2, 3)),
    **{f"nano-beir/{name}": (3, 2, 3) for name in NANO},
}


def tar(members):
    """Return a packed archive of text files."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, text in members.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(text.encode())
            archive.addfile(entry, io.BytesIO(text.encode()))
    return packed.getvalue()


def beir_zip(folder, tags):
    """Return a BEIR set as an archive, with the metadata that ir_datasets reads."""
    corpus = [{**passage, "metadata": tags} for passage in CORPUS]
    queries = [{"_id": name, "text": "what is tea", "metadata": tags} for name in ("q1", "q2")]
    qrels = "query-id\tcorpus-id\tscore\nq1\tdoc0\t2\nq2\tdoc2\t1\nq1\tlost\t1\n"
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, entries in (("corpus", corpus), ("queries", queries)):
            archive.writestr(
                f"{folder}/{name}.jsonl", "".join(json.dumps(entry) + "\n" for entry in entries)
            )
        archive.writestr(f"{folder}/qrels/test.tsv", qrels)
    return packed.getvalue()


TOUCHE = {"stance": "PRO", "url": "", "description": "", "narrative": ""}
PUBLISHED = {  # family, key in its list of files: name as published, content
    ("msmarco-passage", "collectionandqueries"): tar(
        {"collection.tsv": COLLECTION, "queries.dev.small.tsv": "20\twhat is bread\n",
         "qrels.dev.small.tsv": "20\t0\t2\t1\n"}
    ),
    ("msmarco-passage", "queries"): tar({"queries.train.tsv": "10\twhat is tea\n11\tnot judged\n"}),
    ("msmarco-passage", "train/qrels"): b"10\t0\t0\t1\n",
    ("msmarco-passage", "train/docpairs"): gzip.compress(b"10\t0\t2\n"),
    ("msmarco-passage", "train/docpairs/v2"): gzip.compress(b"10\t0\t2\n10\t0\t1\n11\t0\t1\n"),
    ("msmarco-passage", "trec-dl-2019/queries"): gzip.compress(b"30\tis tea a drink\n31\tnot judged\n"),
    ("msmarco-passage", "trec-dl-2019/qrels"): b"30 Q0 0 3\n30 Q0 2 0\n",
    ("msmarco-passage", "trec-dl-2020/queries"): gzip.compress(b"40\tis bread a drink\n"),
    ("msmarco-passage", "trec-dl-2020/qrels"): b"40 0 2 2\n",
    ("dpr-w100", "docs"): gzip.compress(b"id\ttext\ttitle\n1\tTea is a drink.\tTea\n2\tSo is milk.\tTea\n"),
    ("beir", "nq"): beir_zip("nq", {}),
    ("beir", "cqadupstack"): beir_zip("cqadupstack/tex", {"tags": ["a"]}),
    ("beir", "webis-touche2020/v2"): beir_zip("webis-touche2020", TOUCHE),
}  # fmt: skip
HUB = {}  # key in the list of files: path on the hub
# each set has a query that is a passage, a passage without text, and a missing relevant passage
for name, folder in NANO.items():
    passages = {
        "_id": ["d0", "q0", "d2"],
        "text": [f"Tea is a drink of {name}.", "what is tea", ""],
    }
    queries = {"_id": ["q0", "q1"], "text": ["what is tea", f"what is {name}"]}
    qrels = {"query-id": ["q0", "q1", "q1"], "corpus-id": ["d0", "d0", "lost"]}
    tables = {
        "docs": ("corpus", passages),
        "queries": ("queries", queries),
        "qrels": ("qrels", qrels),
    }
    for part, (place, columns) in tables.items():
        pq.write_table(pa.table(columns), packed := io.BytesIO())
        PUBLISHED["nano-beir", f"{name}/{part}"] = packed.getvalue()
        HUB["nano-beir", f"{name}/{part}"] = f"{folder}/{place}/train-00000-of-00001.parquet"
TITLES = tar({"marco/para.title.txt": "0\tTea\n2\tBread\n"})


@pytest.fixture(scope="module")
def published(tmp_path_factory):
    """The package's lists with the checksums and counts of the miniatures, and a folder with these
    as published.
    """
    folder = tmp_path_factory.mktemp("published")
    downloads, metadata = (
        json.loads(pkgutil.get_data("ir_datasets", f"etc/{name}.json"))
        for name in ("downloads", "metadata")
    )
    for (family, key), content in PUBLISHED.items():
        file = downloads[family][key]
        file["expected_md5"] = hashlib.md5(content).hexdigest()
        path = folder / HUB.get((family, key), file["url"].rpartition("/")[2])
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    (folder / "marco.tar.gz").write_bytes(TITLES)
    for name, counts in COUNTS.items():
        metadata[name] |= {
            part: {"count": count} for part, count in zip(PARTS, counts, strict=False) if count
        }
    return folder, {"downloads.json": downloads, "metadata.json": metadata}


@pytest.fixture
def home(published, tmp_path, monkeypatch):
    """A fresh ir_datasets with an empty home, the miniatures' lists and no network; yields the
    published folder.
    """
    folder, lists = published
    monkeypatch.setenv("IR_DATASETS_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("IR_DATASETS_DL_TRIES", "1")
    monkeypatch.setenv("IR_DATASETS_SMALL_FILE_SIZE", "0")
    packaged = pkgutil.get_data

    def data(package, name):
        changed = lists.get(name.rpartition("/")[2])
        return json.dumps(changed).encode() if changed else packaged(package, name)

    def offline(url, **_):
        raise requests.ConnectionError("no network", request=requests.Request("GET", url).prepare())

    monkeypatch.setattr(pkgutil, "get_data", data)
    monkeypatch.setattr(requests, "get", offline)
    before = {
        name: sys.modules.pop(name)
        for name in [*sys.modules]
        if name.partition(".")[0] == "ir_datasets"
    }
    importlib.import_module("ir_datasets").log.easy().logger().setLevel("ERROR")
    yield folder
    for name in [*sys.modules]:
        if name.partition(".")[0] == "ir_datasets":
            del sys.modules[name]
    sys.modules.update(before)


def loaded(folder, **settings):
    return source.Settings(**settings, **({"files": str(folder)} if folder else {})).load()


def test_msmarco_with_titles_and_wikipedia_are_read_completely(home, tmp_path):
    collection = loaded(home, **MSMARCO)
    assert write_collection(tmp_path / "out", collection) == 3
    assert read_passages(tmp_path / "out").to_pylist() == [
        {"passage_id": "0", "title": "Tea", "text": "Tea is a drink."},
        {"passage_id": "1", "title": "", "text": "So is caf\u00e9 au lait."},
        {"passage_id": "2", "title": "Bread", "text": "Bread is not."},
    ]
    read = {
        split: read_queries(tmp_path / "out", split)["query_id"].tolist()
        for split in MSMARCO["splits"]
    }
    assert read == {"train": ["10"], "dev": ["20"], "dl19": ["30"], "dl20": ["40"]}
    assert read_qrels(tmp_path / "out", "dl19").to_numpy().tolist() == [[0, 0, 3], [0, 2, 0]]
    about = read_json(tmp_path / "out" / "about.json")
    assert (about["dataset"], about["titles"], about["passages"]) == ("msmarco-passage", True, 3)
    assert {key: about["queries"]["train"][key] for key in ("read", "judged")} == {
        "read": 2,
        "judged": 1,
    }
    assert write_collection(tmp_path / "wikipedia", loaded(home, dataset="dpr-w100")) == 2
    second = {"passage_id": "2", "title": "Tea", "text": "So is milk."}
    assert read_passages(tmp_path / "wikipedia").to_pylist()[1] == second


def test_titles_are_optional(home):
    without = loaded(home, titles=False, **MSMARCO).passages
    assert without["title"].to_pylist() == ["", "", ""]


@pytest.mark.parametrize("dataset", ["beir/nq", "beir/cqadupstack/tex", "beir/webis-touche2020/v2"])
def test_beir_is_read_completely(home, tmp_path, dataset, capsys):
    write_collection(tmp_path / "out", loaded(home, dataset=dataset))
    passages = read_passages(tmp_path / "out").to_pylist()
    assert passages[0] == {"passage_id": "doc0", "title": "Tea", "text": "Tea is a drink."}
    assert [passage["passage_id"] for passage in passages] == [
        "doc0",
        "q1",
    ]  # the one without text is dropped
    queries = read_queries(tmp_path / "out", "test")
    assert queries["query_id"].tolist() == ["q1", "q2"]
    assert read_qrels(tmp_path / "out", "test").to_numpy().tolist() == [
        [0, 0, 2],
        [0, 2, 1],
        [1, 2, 1],
    ]
    odd = read_json(tmp_path / "out" / "about.json")["queries"]["test"]
    assert (odd["judgments of dropped passages"], odd["judgments of unknown passages"]) == (1, 1)
    assert "2 judgments of split test are for passages that do not exist" in capsys.readouterr().err
    assert targets.own_passages(tmp_path / "out", queries).tolist() == [1, -1]


def test_measures_count_judged_passages_that_are_missing(home, tmp_path):
    """The only passage of q2 and one of two passages of q1 are missing."""
    write_collection(tmp_path / "out", loaded(home, dataset="beir/nq"))
    run = Run.of([np.array([1, 0]), np.array([0, 1])], [np.array([2.0, 1.0])] * 2)
    names = ["nDCG@10", "R@10", "RR@10", "AP@10"]
    measured = measure(run, read_qrels(tmp_path / "out", "test"), ["q1", "q2"], names)
    judged = [
        ir_measures.Qrel(*row) for row in (("q1", "doc0", 2), ("q2", "doc2", 1), ("q1", "lost", 1))
    ]
    ranked = [("q1", "q1", 2.0), ("q1", "doc0", 1.0), ("q2", "doc0", 2.0), ("q2", "q1", 1.0)]
    parsed, documents = (
        map(ir_measures.parse_measure, names),
        [ir_measures.ScoredDoc(*row) for row in ranked],
    )
    metrics = ir_measures.iter_calc(list(parsed), judged, documents)
    expected = {(metric.query_id, str(metric.measure)): metric.value for metric in metrics}
    assert measured.set_index(["query_id", "measure"])["value"].to_dict() == pytest.approx(expected)


@pytest.mark.parametrize("name", ["nq", "arguana"])
def test_nano_beir_is_read_completely(home, tmp_path, name):
    """All 39 files have the same name, in the folders of the hub."""
    write_collection(tmp_path / "out", loaded(home, dataset=f"nano-beir/{name}"))
    passages = read_passages(tmp_path / "out").to_pylist()
    assert [(passage["passage_id"], passage["title"]) for passage in passages] == [
        ("d0", ""),
        ("q0", ""),
    ]
    assert passages[0]["text"] == f"Tea is a drink of {name}."
    queries = read_queries(tmp_path / "out", "test")
    assert queries["text"].tolist() == ["what is tea", f"what is {name}"]
    assert read_qrels(tmp_path / "out", "test").to_numpy().tolist() == [
        [0, 0, 1],
        [1, 0, 1],
        [1, 2, 1],
    ]
    assert targets.own_passages(tmp_path / "out", queries).tolist() == [
        -1,
        -1,
    ]  # its published measures leave none out


def test_missing_files_are_reported_together_with_their_addresses(home):
    with pytest.raises(InputError) as error:
        loaded(None, **MSMARCO)
    message = str(error.value)
    assert message.startswith("files of msmarco-passage are missing (")
    for name in ("collectionandqueries.tar.gz", "qrels.train.tsv", "marco.tar.gz"):
        assert f"/{name}" in message.partition("put them")[2]
    with pytest.raises(InputError, match=r"from https://.*/nq.zip, https://rocketqa"):
        loaded(None, dataset="beir/nq")


def test_a_file_with_another_checksum_is_not_used(home, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "nq.zip").write_bytes(b"an older release")
    with pytest.raises(InputError, match="files of beir/nq are missing"):
        loaded(tmp_path / "mine", dataset="beir/nq")


# --- without reading anything ---------------------------------------------------------------------


def test_sizes_are_the_paper_s(tmp_path):
    passages, _, queries = source.Settings(**MSMARCO).expected()
    assert passages == 8_841_823
    assert queries == {"train": 502_939, "dev": 6_980, "dl19": 43, "dl20": 54}
    entries = read_yaml(CONFIG / "overlays/nanobeir.yaml")["collections"].values()
    sizes = [source.Settings(dataset=entry["dataset"]).expected() for entry in entries]
    assert sum(passages for passages, _, _ in sizes) == 56_723
    assert sum(judged["test"] for *_, judged in sizes) == 649


@pytest.mark.parametrize(
    ("settings", "ids", "judged"),
    [
        (
            MSMARCO,
            ["train", "dev/small", "trec-dl-2019", "trec-dl-2020"],
            dict.fromkeys(MSMARCO["splits"], True),
        ),
        ({"dataset": "msmarco-passage", "splits": {"eval": "eval"}}, ["eval"], {"eval": False}),
        ({"dataset": "beir/nq"}, [""], {"test": True}),
        ({"dataset": "beir/fever"}, ["test"], {"test": True}),
        ({"dataset": "dpr-w100"}, [], {}),
    ],
)
def test_splits_follow_the_catalogue(settings, ids, judged):
    entry = source.Settings(**settings)
    assert list(entry.ids().values()) == [f"{entry.dataset}/{part}".rstrip("/") for part in ids]
    assert entry.judged() == judged


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"dataset": "beir/nqq"}, "dataset is beir/nqq, which .*; did you mean beir/nq?"),
        (
            {"dataset": "msmarco-passage", "splits": {"dev": "dev/smal"}},
            "splits.dev is dev/smal; did you mean dev/sm",
        ),
        ({"dataset": "beir/nq", "files": "nowhere"}, "files is nowhere, and .* is not a folder"),
    ],
)
def test_settings_that_do_not_fit_are_refused(settings, message):
    with pytest.raises(InputError, match=message):
        entry = parse(source.Settings, settings)
        entry.judged()
