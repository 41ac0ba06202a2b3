"""Passages with texts that another model wrote, and BM25 over them, as docT5query."""

import pytest
from small_collections import texts_of, write_beir

from cdmae.collections.sources import expanded
from cdmae.collections.store import write_collection
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
    return write_beir(tmp_path / "base", CORPUS, {"q": "priority queue"}, test=[("q", "p1", 1)])


def written(tmp_path, lines=LINES):
    path = tmp_path / "texts.tsv"
    path.write_text("".join(f"{line}\n" for line in lines))
    return str(path)


def test_bm25_answers_the_collections_queries_from_the_expanded_passages(base, tmp_path):
    settings = expanded.Settings(of=base, texts=written(tmp_path), samples=2)
    assert settings.judged() == {"test": True}
    assert [path.name for path in settings.depends()][-1] == "texts.tsv"
    assert settings.modules() == ["cdmae.collections.sources.beir"]
    assert settings.expected()[::2] == (3, {"test": 1})
    assert settings.expected()[1] == settings.base.expected()[1] + 2 * expanded.WORDS
    collection = settings.load()
    assert texts_of(collection) == {
        "p1": "a binary heap a priority queue heap sort",
        "p2": "a hash table dictionary",
        "p3": "a linked list nodes and pointers",
    }
    write_collection(tmp_path / "out", collection)
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


def test_a_mistake_in_the_settings_is_reported_at_its_place(base, tmp_path):
    with pytest.raises(InputError, match="texts is nowhere.tsv, and .* is not a file"):
        parse(expanded.Settings, {"of": base, "texts": "nowhere.tsv"})
    unlabelled = {"source": "pydocs", "size": "default", "unlabelled": 4000}
    own = {"of": unlabelled, "texts": written(tmp_path)}
    with pytest.raises(InputError) as refused:
        parse(expanded.Settings, own, "collections", "more")
    (mistake,) = refused.value.several
    assert str(mistake).startswith("collections.more.of.unlabelled is 4000")
    assert mistake.keys == ("collections", "more", "of", "unlabelled")


@pytest.mark.parametrize(
    ("passages", "message"),
    [
        ({"docs": "docs"}, "docs is docs; expected a collection of source expanded"),
        ({"docs": "mor"}, "docs is mor; expected a collection of source expanded"),
        ({"dogs": "more"}, "dogs is dogs, which is not in collections; did you"),
    ],
)
def test_passages_that_expand_nothing_are_refused(values, base, tmp_path, passages, message):
    more = {"source": "expanded", "of": base, "texts": written(tmp_path)}
    config = {
        "results": values["results"],
        "collections": {"docs": base, "more": more},
        "systems": {"bm25": {"kind": "bm25"}, "t5": {"kind": "bm25", "passages": passages}},
        "evaluation": {"collections": {"docs": ["test"]}, "baseline": "bm25"},
    }
    with pytest.raises(InputError) as refused:
        load(config)
    assert str(refused.value).startswith(f"systems.t5.passages.{message}")
