"""Pseudo queries: part of a passage is the query for the rest of it."""

import pytest
from small_collections import relevant, write_lines

from cdmae.collections.sources import pseudo
from cdmae.errors import InputError
from cdmae.fields import parse

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


def test_a_span_is_the_query_for_the_words_around_it(settings):
    asked, passages = made(settings(method="span"))
    assert set(asked) == {"p1", "p2"}
    query = asked["p2"].split()
    rest = passages["p2"][1].split()
    assert 5 <= len(query) <= 16 and len(query) + len(rest) == 40
    begin = int(query[0].removeprefix("word"))
    assert [*rest[:begin], *query, *rest[begin:]] == LONG.split()


def test_fewer_queries_are_a_subset_and_other_passages_keep_their_words(settings):
    every, _ = made(settings(method="span"))
    one, passages = made(settings(method="span", queries=1))
    (kept,) = one
    assert one[kept] == every[kept]
    assert {name for name in WHOLE if passages[name] != WHOLE[name]} == {kept}


def test_dev_has_other_queries_than_train(settings):
    entry = settings(method="span", dev=1)
    assert entry.judged() == {"train": True, "dev": True}
    assert entry.expected()[::2] == (3, {"train": 2, "dev": 1})
    queries = entry.load().queries
    assert len({*queries["train"]["query_id"], *queries["dev"]["query_id"]}) == 2


def test_too_few_queries_are_refused(settings):
    message = "method is title, and dev is 1, but 3 passages give 1 different"
    with pytest.raises(InputError, match=message):
        settings(method="title", dev=1).load()


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("    pip install it now\n\nThen it is there. It runs as a service.", "Then it is there."),
        ("Install it like this:\n\n    pip install it\n\nThen it is there. It runs now.", "Then it is there."),
        ("See [the guide](a/b#c) for it. Then it runs as a service here.", ""),
        ("word " * 31 + "end. Then it runs as a service here.", ""),
        ("self.x = f(a)[0] == {1: b}; y |= z. Then it runs as a service.", ""),
        ("Quelle est la durée de vie ? Elle est de deux ans en moyenne.", "Quelle est la durée de vie ?"),
    ],
)  # fmt: skip
def test_code_links_and_long_sentences_are_no_queries(text, query):
    found = pseudo.divided("p", "", text, "first_sentence")
    assert (found[0] if found else "") == query


@pytest.mark.parametrize("method", pseudo.CUT)
def test_a_passage_keeps_the_words_of_its_query_if_a_teacher_grades_it(settings, method):
    asked, passages = made(settings(method=method, keep_query=True))
    assert "p1" in asked
    assert passages == WHOLE


# --- written queries, and several kinds -----------------------------------------------------------


def lines_of(folder, *lines):
    (folder / "queries.tsv").write_text("".join(f"{line}\n" for line in lines))
    return str(folder / "queries.tsv")


def test_written_queries_leave_their_passages_as_they_are(settings, tmp_path):
    """The first of a passage counts; passages may lack one, or have one that is too short."""
    texts = lines_of(tmp_path, "p1\tsmallest of all\np1\tanother one of it", "p2\ttoo short")
    entry = settings(method="written", texts=texts)
    assert [path.name for path in entry.depends()] == ["corpus.jsonl", "queries.tsv"]
    asked, passages = made(entry)
    assert asked == {"p1": "smallest of all"}
    assert passages == WHOLE


def test_written_queries_of_other_passages_are_refused(settings, tmp_path):
    texts = lines_of(tmp_path, "p2\tone two three", "p9\ta query of nobody")
    with pytest.raises(InputError, match="queries.tsv has a query for p9, which is not a passage"):
        settings(method="written", texts=texts).load()


def test_mixed_queries_are_of_every_kind_that_a_passage_allows(settings, tmp_path):
    """Each kind alone gives the same query."""
    whole = []
    for row in range(60):
        words = " ".join(f"{word}{row}" for word in FIRST.rstrip(".").replace(". ", " ").split())
        title = f"The heap {row} algorithm" * (row % 2)
        text = f"One sentence of {row}. The other of {words}"
        whole.append({"_id": f"p{row}", "title": title, "text": text})
    write_lines(tmp_path / "corpus.jsonl", whole)
    texts = lines_of(tmp_path, *(f"p{row}\twritten query {row}" for row in range(60)))
    alone = {method: made(settings(method=method, keep_query=True))[0] for method in pseudo.CUT}
    alone["written"] = {f"p{row}": f"written query {row}" for row in range(60)}
    asked, passages = made(settings(method="mixed", texts=texts))
    assert not any(title for title, _ in passages.values())
    for queries in alone.values():
        assert sum(queries.get(name) == query for name, query in asked.items()) >= 4
    every = {query for queries in alone.values() for query in queries.values()}
    assert every >= set(asked.values())


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"of": {"source": "pages"}}, "pages is not a source of collections; expected beir"),
        ({"of": {"source": "beir"}}, "of.path is missing"),
        ({"of": {"source": "beir", "path": "x", "pth": "y"}}, "of.pth is not a setting; did you mean path?"),
        ({"method": "written"}, 'texts is "", and '),
        ({"method": "mixed", "texts": "nowhere"}, "texts is nowhere, and "),
    ],
)  # fmt: skip
def test_invalid_settings_are_refused(changed, said):
    with pytest.raises(InputError) as caught:
        parse(pseudo.Settings, {"of": {"source": "beir", "path": "x"}} | changed)
    assert said in str(caught.value)
