"""Collections that are made of others: pseudo queries, expanded passages, spans, joined passages."""

import pytest
from small_collections import relevant, stored, texts_of, write_beir, write_lines

from cdmae.collections import settings_of
from cdmae.collections.sources import expanded, joined, pseudo
from cdmae.collections.store import write_collection
from cdmae.errors import InputError
from cdmae.retrieval import bm25
from cdmae.runs import Target, read_run

FIRST = "A heap is a binary tree. Its smallest element is always the root, at index zero."
LONG = " ".join(f"word{place}" for place in range(40))
CORPUS = [
    {"_id": "p1", "title": "The heap queue algorithm", "text": FIRST},
    {"_id": "p2", "title": "", "text": LONG},
    {"_id": "p3", "title": "Short", "text": "Too short."},
]
WHOLE = {each["_id"]: (each["title"], each["text"]) for each in CORPUS}


@pytest.fixture
def settings(tmp_path):
    write_lines(tmp_path / "corpus.jsonl", CORPUS)
    return lambda **changed: pseudo.Settings(
        of={"source": "beir", "path": str(tmp_path)}, **changed
    )


def made(settings):
    """Load a collection; return its queries by passage id, and (title, text) by passage id."""
    collection = settings.load()
    asked = {name: query for query, (name,) in relevant(collection).items()}
    return asked, {name: (title, text) for name, title, text in collection.rows()}


@pytest.mark.parametrize(
    ("method", "query", "left", "other"),
    [
        ("title", CORPUS[0]["title"], ("", FIRST), ""),  # no passage has a title
        ("first_sentence", FIRST[:24], (CORPUS[0]["title"], FIRST[25:]), "Short"),
    ],
)
def test_a_title_or_a_first_sentence_is_the_query_for_the_rest(
    settings, method, query, left, other
):
    asked, passages = made(settings(method=method))
    assert asked == {"p1": query}
    assert passages["p1"] == left
    assert passages["p3"] == (other, "Too short.")


def test_of_passages_with_the_same_query_the_first_keeps_it(settings, tmp_path):
    write_lines(tmp_path / "corpus.jsonl", [*CORPUS, CORPUS[0] | {"_id": "p4"}])
    asked, passages = made(settings())
    assert set(asked) == {"p1"} and passages["p4"][1] == FIRST


def test_a_span_is_the_query_for_the_words_around_it(settings):
    asked, passages = made(settings(method="span"))
    assert set(asked) == {"p1", "p2"}
    query = asked["p2"].split()
    rest = passages["p2"][1].split()
    assert 5 <= len(query) <= 16 and len(query) + len(rest) == 40
    begin = int(query[0].removeprefix("word"))
    assert [*rest[:begin], *query, *rest[begin:]] == LONG.split()
    # of fewer queries, other passages keep their words
    one, passages = made(settings(method="span", queries=1))
    (kept,) = one
    assert one[kept] == asked[kept]
    assert {name for name in WHOLE if passages[name] != WHOLE[name]} == {kept}


def test_dev_has_other_queries_than_train(settings):
    entry = settings(method="span", dev=1)
    assert entry.judged() == {"train": True, "dev": True}
    assert entry.expected()[::2] == (3, {"train": 2, "dev": 1})
    queries = entry.load().queries
    assert len({*queries["train"]["query_id"], *queries["dev"]["query_id"]}) == 2


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("    pip install it now\n\nThen it is there. It runs as a service.", "Then it is there."),
        ("- One item of a list.\n\nThen it is there. It runs as a service.", "Then it is there."),
        ("See [the guide](a/b#c) for it. Then it runs as a service here.", ""),
        ("One two three. Four five six seven eight.", "One two three."),
        ("One two three. Four five six seven.", ""),
        ("word " * 31 + "end. Then it runs as a service here.", ""),
    ],
)  # fmt: skip
def test_code_items_links_and_long_sentences_are_no_queries(text, query):
    found = pseudo.divided("p", "", text, "first_sentence")
    assert (found[0] if found else "") == query


def test_bm25_answers_the_collections_queries_from_the_expanded_passages(tmp_path):
    passages = {"p1": "a binary heap", "p2": "a hash table"}
    asked = {"q": "priority queue"}
    base = write_beir(tmp_path / "base", passages, asked, test=[("q", "p1", 1)])
    lines = tmp_path / "texts.tsv"
    lines.write_text("p1\ta priority queue\np1\theap sort\np2\tdictionary\n")
    settings = expanded.Settings(of=base, texts=str(lines), samples=2)
    assert settings.judged() == {"test": True} and lines in settings.depends()
    assert settings.expected()[1] == settings.base.expected()[1] + 2 * expanded.WORDS
    collection = settings.load()
    assert list(texts_of(collection).values()) == [
        "a binary heap a priority queue heap sort",
        "a hash table dictionary",
    ]
    write_collection(tmp_path / "out", collection)
    write_collection(tmp_path / "docs", settings.base.load())
    bm25.write_runs(
        folders=[tmp_path / "docs"], passages=[tmp_path / "out/passages.parquet"], languages={"docs": "en"}, mined=[],
        indexes=tmp_path / "indexes", targets=[Target("docs", "test", tmp_path / "docs", output=tmp_path / "run")],
        depth=10, k1=0.9, b=0.4,
    )  # fmt: skip
    assert read_run(tmp_path / "run").ranked(0)[0].tolist() == [0]


WORDS = [f"word{number}" for number in range(60)]
TEXTS = [" ".join(WORDS[first : first + 40]) for first in range(12)]


def test_spans_ask_for_the_passages_that_contain_them(tmp_path):
    """Fewer are some of all, in the order of the passages; one passage is too short."""
    stored(tmp_path, [*TEXTS, "too short"], {"test": {}})

    def spans(number):
        values = {"source": "spans", "of": str(tmp_path), "queries": number}
        return settings_of(values, "spans").load()

    made = spans(12)
    assert made.shared == tmp_path and list(made.queries) == ["train"]
    texts = {name: text for name, _, text in made.rows()}
    rows = made.qrels["train"].merge(made.queries["train"], on="query_id")
    assert len(rows) == 12 and set(rows["grade"]) == {1}
    for passage, query in zip(rows["passage_id"], rows["text"], strict=True):
        assert 5 <= len(query.split()) <= 16
        assert query in texts[passage]
    every, some = (each.queries["train"]["query_id"].tolist() for each in (made, spans(5)))
    assert len(some) == 5
    assert some == [name for name in every if name in some] != every[:5]
    with pytest.raises(InputError, match="queries is 13"):
        spans(13)


def test_passages_follow_each_other_and_ids_begin_with_the_collection(tmp_path):
    """Two collections share the id of a passage."""
    parts = {
        "one": write_beir(tmp_path / "one", {"p0": "a b", "p1": "c d e"}),
        "two": write_beir(tmp_path / "two", {"p0": "f"}),
    }
    settings = joined.Settings(of=parts)
    assert list(settings.load().rows()) == [
        ("one/p0", "", "a b"),
        ("one/p1", "", "c d e"),
        ("two/p0", "", "f"),
    ]
    assert settings.judged() == {} and settings.expected()[0] == 3
    assert settings.depends() == [tmp_path / name / "corpus.jsonl" for name in parts]
    assert settings.modules() == ["cdmae.collections.sources.beir"] * 2
