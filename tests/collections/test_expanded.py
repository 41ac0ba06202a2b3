"""Passages with texts that another model wrote, and BM25 over them, as docT5query."""

import gzip

import pytest

from cdmae.collections.sources import expanded
from cdmae.collections.store import read_passages, read_qrels, read_queries, write_collection
from cdmae.config.load import load
from cdmae.errors import InputError
from cdmae.fields import parse
from cdmae.retrieval import bm25
from cdmae.runs import read_run

CORPUS = {"p1": "a binary heap", "p2": "a hash table", "p3": "a linked list"}
LINES = ["p1\ta priority queue", "p1\theap sort", "p2\tdictionary", "p3\tnodes and pointers"]


@pytest.fixture
def base(tmp_path):
    """A collection in BEIR's layout with three passages and a test query."""
    folder = tmp_path / "base"
    (folder / "qrels").mkdir(parents=True)
    (folder / "corpus.jsonl").write_text(
        "".join(f'{{"_id": "{n}", "title": "T", "text": "{t}"}}\n' for n, t in CORPUS.items())
    )
    (folder / "queries.jsonl").write_text('{"_id": "q", "text": "priority queue"}\n')
    (folder / "qrels/test.tsv").write_text("query-id\tcorpus-id\tscore\nq\tp1\t1\n")
    return {"source": "beir", "path": str(folder)}


def written(tmp_path, lines, name="texts.tsv"):
    content = "".join(f"{line}\n" for line in lines).encode()
    path = tmp_path / name
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    return str(path)


@pytest.mark.parametrize("name", ["texts.tsv", "texts.tsv.gz"])
def test_texts_are_appended_and_queries_and_judgments_stay(base, tmp_path, name):
    settings = expanded.Settings(of=base, texts=written(tmp_path, LINES, name))
    assert settings.judged() == {"test": True}
    assert [path.name for path in settings.depends()][-1] == name
    for fact in ("threads", "version", "modules"):
        alone = getattr(settings.base, fact)()
        found = getattr(settings, fact)()
        assert found == (["cdmae.collections.sources.beir", *alone] if fact == "modules" else alone)
    write_collection(tmp_path / "out", settings.load())
    passages = read_passages(tmp_path / "out")
    assert passages["passage_id"].to_pylist() == ["p1", "p2", "p3"]
    assert passages["text"].to_pylist() == [
        "a binary heap a priority queue heap sort",
        "a hash table dictionary",
        "a linked list nodes and pointers",
    ]
    assert passages["title"].to_pylist() == ["T"] * 3
    assert read_queries(tmp_path / "out", "test")["text"].tolist() == ["priority queue"]
    assert read_qrels(tmp_path / "out", "test")["passage"].tolist() == [0]
    count, words, queries = settings.expected()
    assert (count, queries) == (3, {"test": 1})
    assert words - settings.base.expected()[1] == pytest.approx(9 / 3)  # of the texts


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (LINES[:2], "texts.tsv, the end; expected a text of p2, the next passage"),
        ([LINES[2], *LINES[:2]], "texts.tsv, line 1: a text of p2; expected a text of p1, the"),
        ([*LINES, "p9\tw"], "texts.tsv, line 5: a text of p9; expected the end, because all"),
        ([*LINES[:3], "p3"], "texts.tsv, line 4: another number of columns; expected pass"),
    ],
)
def test_texts_of_other_passages_are_refused(base, tmp_path, lines, message):
    settings = expanded.Settings(of=base, texts=written(tmp_path, lines))
    with pytest.raises(InputError, match=message):
        settings.load()


def test_a_missing_file_and_a_second_expansion_are_refused(base, tmp_path):
    with pytest.raises(InputError, match="texts is nowhere.tsv, and .* is not a file"):
        parse(expanded.Settings, {"of": base, "texts": "nowhere.tsv"})
    of = {"source": "expanded", "of": base, "texts": written(tmp_path, LINES)}
    with pytest.raises(InputError, match="of.source is expanded; expected another source"):
        parse(expanded.Settings, {"of": of, "texts": of["texts"]})


def test_a_mistake_in_the_collection_is_reported_at_its_place(tmp_path):
    unlabelled = {"source": "pydocs", "size": "default", "unlabelled": 4000}
    own = {"of": unlabelled, "texts": written(tmp_path, ["p1\tx"])}
    with pytest.raises(InputError) as refused:
        parse(expanded.Settings, own, "collections", "more")
    (mistake,) = refused.value.several
    assert str(mistake).startswith("collections.more.of: unlabelled is 4000")
    assert mistake.keys == ("collections", "more", "of", "unlabelled")


# --- BM25 over expanded passages ------------------------------------------------------------------


def test_bm25_answers_the_collections_queries_from_the_expanded_index(base, tmp_path):
    settings = expanded.Settings(of=base, texts=written(tmp_path, LINES))
    write_collection(tmp_path / "out", settings.load())
    write_collection(tmp_path / "docs", settings.base.load())
    hits = {}
    for name in ("docs", "out"):
        run = tmp_path / f"{name}.parquet"
        bm25.write_runs(
            folders=[tmp_path / "docs"], passages=[tmp_path / name / "passages.parquet"], languages={"docs": "en"}, mined=[],
            indexes=tmp_path / f"{name}.indexes", collections=[tmp_path / "docs"],
            splits=["test"], outputs=[run], depth=10, k1=0.9, b=0.4,
        )  # fmt: skip
        hits[name] = read_run(run).ranked(0)[0].tolist()
    assert hits == {"docs": [], "out": [0]}


@pytest.fixture
def config(values, base, tmp_path):
    """A config with an expanded copy of the collection `docs`, and BM25 over it."""
    more = {"source": "expanded", "of": base, "texts": written(tmp_path, LINES)}
    return {
        "results": values["results"],
        "collections": {"docs": base, "more": more},
        "systems": {"bm25": {"kind": "bm25"}, "t5": {"kind": "bm25", "passages": {"docs": "more"}}},
        "evaluation": {"collections": {"docs": ["test"]}, "baseline": "bm25"},
    }


@pytest.mark.parametrize(
    ("passages", "message"),
    [
        ({"docs": "docs"}, "docs is docs; expected a collection of source expanded"),
        ({"docs": "mor"}, "docs is mor; expected a collection of source expanded"),
        ({"dogs": "more"}, "dogs is dogs, which is not in collections; did you"),
    ],
)
def test_passages_that_expand_nothing_are_refused(config, passages, message):
    config["systems"]["t5"]["passages"] = passages
    with pytest.raises(InputError) as refused:
        load(config)
    assert str(refused.value).startswith(f"systems.t5.passages.{message}")
