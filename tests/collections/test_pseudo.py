"""Pseudo queries: part of a passage is the query for the rest of it."""

import json

import pytest

from cdmae.collections.sources import pseudo
from cdmae.collections.store import read_passages, read_qrels, read_queries, write_collection
from cdmae.errors import InputError
from cdmae.fields import parse

FIRST = "A heap is a binary tree. Its smallest element is always the root, at index zero."
LONG = " ".join(f"word{place}" for place in range(40))
CORPUS = [
    {"_id": "p1", "title": "The heap queue algorithm", "text": FIRST},
    {"_id": "p2", "title": "", "text": LONG},
    {"_id": "p3", "title": "Short", "text": "Too short."},
]


def write_corpus(folder, passages):
    lines = "".join(json.dumps(passage) + "\n" for passage in passages)
    (folder / "corpus.jsonl").write_text(lines)


@pytest.fixture
def settings(tmp_path):
    write_corpus(tmp_path, CORPUS)
    return lambda **changed: pseudo.Settings(
        of={"source": "beir", "path": str(tmp_path)}, **changed
    )


def written(settings, folder):
    """Write a collection; return its queries by passage id, and its passages."""
    write_collection(folder, settings.load())
    passages = read_passages(folder).to_pylist()
    queries, qrels = read_queries(folder, "train"), read_qrels(folder, "train")
    assert qrels["grade"].tolist() == [1] * len(queries)
    pairs = zip(qrels["query"], qrels["passage"], strict=True)
    asked = {passages[passage]["passage_id"]: queries["text"][query] for query, passage in pairs}
    return asked, {passage["passage_id"]: passage for passage in passages}


@pytest.mark.parametrize(
    ("method", "query", "left", "other"),
    [
        ("title", CORPUS[0]["title"], ("", FIRST), ""),  # no passage has a title
        ("first_sentence", FIRST[:24], (CORPUS[0]["title"], FIRST[25:]), "Short"),
    ],
)
def test_a_title_or_a_first_sentence_is_the_query_for_the_rest(
    settings, tmp_path, method, query, left, other
):
    asked, passages = written(settings(method=method), tmp_path / "out")
    assert asked == {"p1": query}
    assert (passages["p1"]["title"], passages["p1"]["text"]) == left
    assert (passages["p3"]["title"], passages["p3"]["text"]) == (other, "Too short.")


def test_a_span_is_the_query_for_the_words_around_it(settings, tmp_path):
    asked, passages = written(settings(method="span"), tmp_path / "out")
    assert set(asked) == {"p1", "p2"}
    query, rest = asked["p2"].split(), passages["p2"]["text"].split()
    assert 5 <= len(query) <= 16 and len(query) + len(rest) == 40
    begin = int(query[0].removeprefix("word"))
    assert [*rest[:begin], *query, *rest[begin:]] == LONG.split()


def test_fewer_queries_are_a_subset_and_other_passages_keep_their_words(settings, tmp_path):
    every, _ = written(settings(method="span"), tmp_path / "every")
    one, passages = written(settings(method="span", queries=1), tmp_path / "one")
    (kept,) = one
    assert one[kept] == every[kept]
    whole = {passage["_id"]: passage["text"] for passage in CORPUS}
    assert {name for name in whole if passages[name]["text"] != whole[name]} == {kept}


def test_dev_has_other_queries_than_train(settings):
    entry = settings(method="span", dev=1)
    assert entry.judged() == {"train": True, "dev": True}
    assert entry.expected()[::2] == (3, {"train": 2, "dev": 1})
    queries = entry.load().queries
    assert len({*queries["train"]["query_id"], *queries["dev"]["query_id"]}) == 2


@pytest.mark.parametrize(
    ("passages", "changed", "message"),
    [
        (CORPUS[2:], {"method": "span"}, "method is span, and dev is 0, but 1 passages give 0 diff"),
        ([{**CORPUS[0], "_id": str(row)} for row in range(3)], {"method": "title", "dev": 1},
         "method is title, and dev is 1, but 3 passages give 1 different"),
    ],
)  # fmt: skip
def test_too_few_queries_are_refused(settings, tmp_path, passages, changed, message):
    write_corpus(tmp_path, passages)
    with pytest.raises(InputError, match=message):
        settings(**changed).load()


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


def test_a_passage_keeps_the_words_of_its_query_if_a_teacher_grades_it(settings, tmp_path):
    for method in ("title", "first_sentence", "span"):
        asked, passages = written(settings(method=method, keep_query=True), tmp_path / method)
        assert "p1" in asked
        for passage in CORPUS:
            found = passages[passage["_id"]]
            assert (found["title"], found["text"]) == (passage["title"], passage["text"])


# --- written queries, and several kinds -----------------------------------------------------------


def lines_of(folder, *lines):
    (folder / "queries.tsv").write_text("".join(f"{line}\n" for line in lines))
    return str(folder / "queries.tsv")


def test_written_queries_leave_their_passages_as_they_are(settings, tmp_path):
    """The first of a passage counts; passages may lack one, or have one that is too short."""
    texts = lines_of(tmp_path, "p1\tsmallest of all\np1\tanother one of it", "p2\ttoo short")
    made = settings(method="written", texts=texts)
    assert [path.name for path in made.depends()] == ["corpus.jsonl", "queries.tsv"]
    asked, passages = written(made, tmp_path / "out")
    assert asked == {"p1": "smallest of all"}
    assert passages["p1"]["text"] == FIRST and passages["p1"]["title"] == CORPUS[0]["title"]


def test_written_queries_of_other_passages_are_refused(settings, tmp_path):
    texts = lines_of(tmp_path, "p2\tone two three", "p9\ta query of nobody")
    with pytest.raises(InputError, match="queries.tsv has a query for p9, which is not a passage"):
        settings(method="written", texts=texts).load()


def test_mixed_queries_are_of_every_kind_that_a_passage_allows(settings, tmp_path):
    """Each kind alone gives the same query; another run gives the same kinds."""
    whole = []
    for row in range(60):
        words = " ".join(f"{word}{row}" for word in FIRST.rstrip(".").replace(". ", " ").split())
        title = f"The heap {row} algorithm" * (row % 2)
        text = f"One sentence of {row}. The other of {words}"
        whole.append({"_id": f"p{row}", "title": title, "text": text})
    write_corpus(tmp_path, whole)
    texts = lines_of(tmp_path, *(f"p{row}\twritten query {row}" for row in range(60)))
    alone = {
        method: written(settings(method=method, keep_query=True), tmp_path / method)[0]
        for method in ("title", "first_sentence", "span")
    }
    alone["written"] = {f"p{row}": f"written query {row}" for row in range(60)}
    asked, passages = written(settings(method="mixed", texts=texts), tmp_path / "mixed")
    assert not any(passage["title"] for passage in passages.values())
    for queries in alone.values():
        assert sum(queries.get(name) == query for name, query in asked.items()) >= 4
    every = {query for queries in alone.values() for query in queries.values()}
    assert every >= set(asked.values())
    assert written(settings(method="mixed", texts=texts), tmp_path / "again")[0] == asked


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"of": {"source": "pseudo"}}, "of.source is pseudo; expected another source"),
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
