"""Collections with a mistake are refused by file, line and value, or by the key of the config."""

import gzip
import json

import pytest
from small_collections import stored, write_files

from cdmae import collections
from cdmae.errors import InputError, dotted
from cdmae.fields import parse

PASSAGE = '{"_id": "p1", "text": "a passage"}\n'
QUERIES = '{"_id": "q1", "text": "a"}\n{"_id": "q2", "text": "b"}\n'
BEIR = {"corpus.jsonl": PASSAGE, "queries.jsonl": QUERIES, "qrels/test.tsv": "q1\tp1\t1\n"}
MSMARCO = {
    "collection.tsv": "0\tone\n1\ttwo\n",
    "queries.train.tsv": "10\tasked\n",
    "qrels.train.tsv": "10\t0\t1\t1\n",
}
DOCS = {"faq.md": "# Cost\n\nIt is free.\n"}
TWO = "query,positive\nq,p\n"


def beir(name, content):
    return "beir", BEIR | {name: content}, {"path": "."}


def msmarco(name, content):
    return "msmarco", MSMARCO | {name: content}, {"path": "."}


def pairs(content, **settings):
    return "pairs", {"pairs.csv": content}, {"path": "pairs.csv", **settings}


def asked(questions):
    settings = {"path": "docs", "questions": {"test": "asked.csv"}}
    return "text", {"docs/faq.md": DOCS["faq.md"], "asked.csv": questions}, settings


def derived(source, **settings):
    """A source over five passages."""
    rows = [{"_id": f"p{row}", "text": f"passage {row}"} for row in range(1, 6)]
    files = {"base/corpus.jsonl": "".join(f"{json.dumps(row)}\n" for row in rows)}
    return source, files, {"of": {"source": "beir", "path": "base"}, **settings}


def texts(lines):
    name, files, values = derived("expanded", texts="texts.tsv")
    return name, files | {"texts.tsv": lines}, values


def held_out(count, passages, split="train", **shares):
    """Queries of which each has its own passage, or all the same."""
    files = {
        "corpus.jsonl": "".join(f'{{"_id": "p{n}", "text": "t"}}\n' for n in range(passages)),
        "queries.jsonl": "".join(f'{{"_id": "q{n}", "text": "t{n}"}}\n' for n in range(count)),
        f"qrels/{split}.tsv": "".join(f"q{n}\tp{n % passages}\t1\n" for n in range(count)),
    }
    return "beir", files, {"path": ".", "holdout": shares}


# what is read, and what the message names
ROWS = [
    # BEIR
    (*beir("corpus.jsonl", None), "corpus.jsonl"),
    (*beir("corpus.jsonl", '{"_id": "p1", "text": " "}'), "corpus.jsonl"),
    (*beir("corpus.jsonl", PASSAGE + "{'_id': 1}\n"), "corpus.jsonl, line 2: "),
    (*beir("corpus.jsonl", PASSAGE + "[1]\n"), "corpus.jsonl, line 2: "),
    (*beir("corpus.jsonl", PASSAGE + '{"_id": "p", "txt": "x"}'), "corpus.jsonl, line 2: "),
    (*beir("corpus.jsonl", '{"_id": true, "text": "x"}'), "corpus.jsonl, line 1: _id is true"),
    (*beir("corpus.jsonl", PASSAGE.replace("p1", r"p\u001b[2J") * 2), r"corpus.jsonl, line 2: the id p\x1b[2J"),
    (*beir("corpus.jsonl", PASSAGE.encode() + b'{"_id": "p2", "text": "\xe9"}'), "corpus.jsonl, line 2: "),
    (*beir("corpus.jsonl", PASSAGE + r'{"_id": "p2", "text": "\ud83d"}'), "corpus.jsonl, line 2: text is"),
    (*beir("corpus.jsonl", f'{{"text": {"[" * 9**5}'), "corpus.jsonl, line 1: not JSON"),
    (*beir("corpus.jsonl.gz", b"\x1f\x8b"), "both corpus.jsonl and corpus.jsonl.gz"),
    *(("beir", BEIR | {"corpus.jsonl": None, "corpus.jsonl.gz": content}, {"path": "."},
       "corpus.jsonl.gz cannot be read")
      for content in (gzip.compress(PASSAGE.encode())[:-9], PASSAGE.encode())),
    (*beir("queries.jsonl", None), "queries.jsonl"),
    (*beir("queries.jsonl", '{"_id": "q1", "text": ""}'), "queries.jsonl, line 1: text"),
    (*beir("queries.jsonl", QUERIES * 2), "queries.jsonl, line 3: the id q1"),
    (*beir("qrels/test.tsv", "q1\tp1\t0\nq2\tp1\t-1\n"), "qrels/test.tsv marks no passage"),
    (*beir("qrels/test.tsv", "q9\tp1\t1\n" * 3), "qrels/test.tsv, line 1: query q9, passage p1"),
    (*beir("qrels/test.tsv", "q1\tp1\t1\nq1\tp8\t1\nq1\tp9\t1\n"), "line 2: query q1, passage p8"),
    (*beir("qrels/test.tsv", "q1\tp1\t1\nq2\tp1\thigh\n"), "qrels/test.tsv, line 2: grade has high"),
    (*beir("qrels/test.tsv", "q1\tp1\t1\nq2\tp1\t99999\n"), "the grade is 99999"),
    (*beir("qrels/test.tsv", "q1\tp1\t0.5\n"), "qrels/test.tsv, line 1: the grade is 0.5"),
    (*beir("qrels/test.tsv", "q1 p1\n"), "qrels/test.tsv, line 1: 2 columns"),
    ("beir", BEIR | {"qrels/test.tsv": None, "qrels.tsv": "q1\tp1\t1\n"}, {"path": "."}, "qrels/{split}.tsv"),
    ("beir", {}, {"path": "nowhere"}, "nowhere"),
    ("beir", {"file": ""}, {"path": "file"}, "file"),
    # MS MARCO
    (*msmarco("collection.tsv", None), "collection.tsv"),
    (*msmarco("collection.tsv", "0\ta\n1 b\n"), "collection.tsv, line 2: "),
    (*msmarco("collection.tsv", "docno\ttext\n0\ta\n"), "collection.tsv, line 1: a header"),
    (*msmarco("queries.train.tsv", None), "queries.train.tsv"),
    (*msmarco("qrels.train.tsv", "10\t0\t7\t1\n"), "qrels.train.tsv, line 1: query 10, passage 7"),
    ("msmarco", MSMARCO, {"path": ".", "titles": True}, "passage_id, title, text"),
    # tables of pairs
    (*pairs("a,b\nq,p\n"), "anchor, query, question; it has a, b"),
    (*pairs("query,anchor,positive\nq,a,p\n"), "anchor, query"),
    (*pairs("question,context,answer\nq,c,a\n"), "answer, context; set `positive` or --positive"),
    (*pairs("question;answer\nq;a\n"), "pairs.csv, line 1: one column, question;answer"),
    (*pairs(TWO + "q\n"), "pairs.csv, line 3: "),
    (*pairs(TWO + '"two\nlines",p\n"",p\n'), "pairs.csv, line 5: query"),
    (*pairs(TWO + "q,\n"), "pairs.csv, line 3: positive"),
    (*pairs(TWO + 'q,"p\n'), "pairs.csv, line 3: "),
    (*pairs("query,positive,score\nq,p,2\n"), "pairs.csv, line 2: score is 2; expected 0 or 1; rename"),
    (*pairs("query,positive,label\nq,p,0\n"), "pairs.csv marks no passage"),
    (*pairs("query,positive,negative,label\nq,p,n,x\n"), "pairs.csv, line 2: label has x"),
    (*pairs("query,pos,neg,pos_scores\nq,p,n,1\n"), "pairs.csv, line 2: 1 scores for 2 passages"),
    (*pairs("query,positive\n"), "pairs.csv holds no pairs"),
    ("pairs", {"a.jsonl": f'{{"query": "q", "positive": "p", "label": {10**400}}}'}, {"path": "a.jsonl"}, "a.jsonl, line 1: label has 1000"),
    (*pairs(TWO, path="none.csv"), "none.csv is not a file"),
    ("pairs", {"pairs.xlsx": ""}, {"path": "pairs.xlsx"}, "pairs.xlsx"),
    ("pairs", {"pairs.xlsx": ""}, {"path": "."}, "no table of pairs"),
    ("pairs", {"train.json": '[{"query": "q", "pos": ["p"]}, 7]'}, {"path": "."}, "train.json, row 2: "),
    ("pairs", {"train-00000-of-00001.csv": TWO, "train.csv": TWO}, {"path": "."}, "both train-00000-of-00001.csv"),
    # documents
    ("text", {"a.pdf": "x"}, {"path": "."}, ".txt, .md, .markdown, .rst, .html, .htm"),
    ("text", {".hidden.txt": "x"}, {"path": "."}, "hidden files"),
    ("text", {"a.txt": b"\xff"}, {"path": "."}, "a.txt, line 1: "),
    ("text", {"\udce9.txt": "x"}, {"path": "."}, "a name that is not UTF-8"),
    ("text", {"a.md": "<!-- -->"}, {"path": "."}, "holds no passages"),
    (*asked("question,file\nwhy,faq.txt\n"), "asked.csv, line 2: file is faq.txt, of which there is no passage; did you mean faq.md?"),
    (*asked("question,where\nwhy,here\n"), "asked.csv, line 2: the question has no id"),
    (*asked("question,file\n"), "asked.csv holds no questions"),
    # made of another collection
    ("pseudo", {}, {"of": {"source": "pages"}}, "of: pages is"),
    (*derived("pseudo", method="title", dev=1), "method is title, and dev is 1"),
    (*derived("expanded", texts="nowhere.tsv"), "texts is nowhere.tsv"),
    (*texts("p1\tx\n"), "texts.tsv, the end; expected a text of p2"),
    (*texts("p2\tx\np1\tx\n"), "texts.tsv, line 1: a text of p2; expected a text of p1"),
    (*texts("".join(f"p{row}\tx\n" for row in (1, 2, 3, 4, 5, 9))), "texts.tsv, line 6: a text of p9"),
    (*texts("p1\tx\np2\n"), "texts.tsv, line 2: "),
    # queries that are held out
    (*held_out(1, 1, dev=1.0), "holdout.dev is 1.0"),
    (*held_out(1, 1, train=0.1), "holdout"),
    (*held_out(1, 1, "test", dev=0.1), "the judged splits are test"),
    (*held_out(20, 1, dev=0.1), "the largest group has 20"),
    (*held_out(10, 10, dev=0.01), "0 of 10 queries"),
    (*held_out(10, 10, dev=0.5, test=0.5), "other shares"),
    # catalogues
    ("ir_datasets", {}, {"dataset": "beir/nqq"}, "beir/nq?"),
    ("ir_datasets", {}, {"dataset": "msmarco-passage", "splits": {"dev": "dev/smal"}}, "splits.dev is dev/smal"),
    ("ir_datasets", {}, {"dataset": "beir/nq", "files": "nowhere"}, "files is nowhere"),
    ("pydocs", {}, {"unlabelled": 6}, "unlabelled is 6"),
]  # fmt: skip


def read(folder, source, files, settings):
    write_files(folder, files)
    made = parse(collections.source(source).Settings, settings)
    made.judged()
    made.load()


@pytest.mark.parametrize(
    ("source", "files", "settings", "named"),
    ROWS,
    ids=[f"{row}-{each[0]}" for row, each in enumerate(ROWS)],
)
def test_a_mistake_is_named(tmp_path, monkeypatch, source, files, settings, named):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as caught:
        read(tmp_path, source, files, settings)
    assert named in str(caught.value)


@pytest.mark.parametrize(
    ("source", "of", "keys"),
    [
        ("pseudo", {"source": "beir"}, "of.path"),
        ("expanded", {"source": "beir", "path": "x", "pth": "y"}, "of.pth"),
        ("joined", {"two": {"source": "beir", "path": "x", "pth": "y"}}, "of.two.pth"),
        ("joined", {"two": 3}, "of.two"),
        ("expanded", {"source": "pydocs", "unlabelled": 4000}, "of.unlabelled"),
    ],
)
def test_a_mistake_within_another_collection_has_its_keys(tmp_path, source, of, keys):
    (tmp_path / "texts.tsv").touch()
    more = {"texts": str(tmp_path / "texts.tsv")} if source == "expanded" else {}
    with pytest.raises(InputError) as caught:
        parse(collections.source(source).Settings, {"of": of, **more}, "collections", "x")
    assert f"collections.x.{keys}" in [dotted(each.keys) for each in caught.value.several]


def test_repeated_passages_are_counted_when_a_collection_is_made(tmp_path, capsys):
    stored(tmp_path, [("a", "Cost", "free"), ("b", "Cost", "free"), ("c", "", "free"), "free"])
    assert "2 of 4 passages" in capsys.readouterr().err
    stored(tmp_path, ["one", "two"])
    assert not capsys.readouterr().err
