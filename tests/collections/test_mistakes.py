"""Collections with a mistake are refused by file, line and value, or by the key of the config."""

import gzip

import pytest
from small_collections import write_files

from cdmae import collections
from cdmae.errors import InputError, dotted
from cdmae.fields import parse

PASSAGE = '{"_id": "p1", "text": "a passage"}\n'
QUERIES = '{"_id": "q1", "text": "a"}\n{"_id": "q2", "text": "b"}\n'
BEIR = {"corpus.jsonl": PASSAGE, "queries.jsonl": QUERIES, "qrels/test.tsv": "q1\tp1\t1\n"}
TWO = "query,positive\nq,p\n"


def beir(name, content):
    return "beir", BEIR | {name: content}, {"path": "."}


def pairs(content, **settings):
    return "pairs", {"pairs.csv": content}, {"path": "pairs.csv", **settings}


# what is read, and what the message names
ROWS = [
    # BEIR
    (*beir("corpus.jsonl", None), "corpus.jsonl"),
    (*beir("corpus.jsonl", PASSAGE + "{'_id': 1}\n"), "corpus.jsonl, line 2: "),
    (*beir("corpus.jsonl", PASSAGE + '{"_id": "p", "txt": "x"}'), "corpus.jsonl, line 2: "),
    (*beir("corpus.jsonl", PASSAGE.replace("p1", r"p\u001b[2J") * 2), r"corpus.jsonl, line 2: the id p\x1b[2J"),
    (*beir("corpus.jsonl", PASSAGE.encode() + b'{"_id": "p2", "text": "\xe9"}'), "corpus.jsonl, line 2: "),
    ("beir", BEIR | {"corpus.jsonl": None, "corpus.jsonl.gz": gzip.compress(PASSAGE.encode())[:-9]}, {"path": "."},
     "corpus.jsonl.gz cannot be read"),
    (*beir("queries.jsonl", '{"_id": "q1", "text": ""}'), "queries.jsonl, line 1: text"),
    (*beir("qrels/test.tsv", "q1\tp1\t0\nq2\tp1\t-1\n"), "qrels/test.tsv marks no passage"),
    (*beir("qrels/test.tsv", "q9\tp1\t1\n" * 3), "qrels/test.tsv, line 1: query q9, passage p1"),
    (*beir("qrels/test.tsv", "q1\tp1\t1\nq2\tp1\thigh\n"), "qrels/test.tsv, line 2: grade has high"),
    ("beir", BEIR | {"qrels/test.tsv": None, "qrels.tsv": "q1\tp1\t1\n"}, {"path": "."}, "qrels/{split}.tsv"),
    # MS MARCO
    ("msmarco", {"collection.tsv": "0\ta\n1 b\n"}, {"path": "."}, "collection.tsv, line 2: "),
    ("msmarco", {"collection.tsv": "0\tone\n"}, {"path": ".", "titles": True}, "passage_id, title, text"),
    # tables of pairs
    (*pairs("a,b\nq,p\n"), "anchor, query, question; it has a, b"),
    (*pairs("question;answer\nq;a\n"), "pairs.csv, line 1: one column, question;answer"),
    (*pairs(TWO + '"two\nlines",p\n"",p\n'), "pairs.csv, line 5: query"),
    (*pairs("query,positive,label\nq,p,.5\n"), "pairs.csv, line 2: label is .5"),
    (*pairs(TWO, path="none.csv"), "none.csv is not a file"),
    # documents
    ("text", {"a.pdf": "x"}, {"path": "."}, ".txt, .md, .markdown, .rst, .html, .htm"),
    ("text", {"docs/faq.md": "Free.", "asked.csv": "question,file\nwhy,faq.txt\n"},
     {"path": "docs", "questions": {"test": "asked.csv"}},
     "asked.csv, line 2: file is faq.txt, of which there is no passage; did you mean faq.md?"),
    # made of another collection
    ("pseudo", {}, {"of": {"source": "pages"}}, "of: pages is"),
    ("expanded", BEIR | {"texts.tsv": "p2\tx\n"}, {"of": {"source": "beir", "path": "."}, "texts": "texts.tsv"},
     "texts.tsv, line 1: a text of p2; expected a text of p1"),
    # catalogues
    ("ir_datasets", {}, {"dataset": "beir/nqq"}, "beir/nq?"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("source", "files", "settings", "named"),
    ROWS,
    ids=[f"{row}-{each[0]}" for row, each in enumerate(ROWS)],
)
def test_a_mistake_is_named(tmp_path, monkeypatch, source, files, settings, named):
    monkeypatch.chdir(write_files(tmp_path, files))
    with pytest.raises(InputError) as caught:
        made = parse(collections.source(source).Settings, settings)
        made.judged()
        made.load()
    assert named in str(caught.value)


@pytest.mark.parametrize(
    ("source", "of", "keys"),
    [
        ("pseudo", {"source": "beir"}, "of.path"),
        ("joined", {"two": {"source": "beir", "path": "x", "pth": "y"}}, "of.two.pth"),
        ("pseudo", {"source": "pydocs", "unlabelled": 4000}, "of.unlabelled"),
    ],
)
def test_a_mistake_within_another_collection_has_its_keys(source, of, keys):
    with pytest.raises(InputError) as caught:
        parse(collections.source(source).Settings, {"of": of}, "collections", "x")
    assert f"collections.x.{keys}" in [dotted(each.keys) for each in caught.value.several]
