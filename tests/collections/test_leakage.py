"""Held-out queries: no passage and no text is in two splits, and every draw can be repeated."""

import json

import pytest

from cdmae import collections
from cdmae.collections import counts
from cdmae.collections.sources import beir, msmarco, pairs, pseudo
from cdmae.collections.store import read_queries, write_collection
from cdmae.errors import InputError
from cdmae.fields import parse, rules_of

HALVES = {"dev": 0.2, "test": 0.2}


def folder(path, positives, texts=None, split="train"):
    """A collection in BEIR's layout; positives: the relevant passages of each query."""
    texts = texts or [f"query number {query}" for query in range(len(positives))]
    names = sorted({passage for of_query in positives for passage in of_query})
    passages = [{"_id": f"p{name}", "text": f"passage {name}"} for name in names]
    queries = [{"_id": f"q{query}", "text": text} for query, text in enumerate(texts)]
    rows = [f"q{query}\tp{passage}\t1\n" for query, own in enumerate(positives) for passage in own]
    (path / "qrels").mkdir()
    for name, entries in (("corpus", passages), ("queries", queries)):
        (path / f"{name}.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    (path / f"qrels/{split}.tsv").write_text("".join(rows))
    return str(path)


def splits_of(settings):
    queries = settings.load().queries
    return {split: set(frame["query_id"]) for split, frame in queries.items()}


def test_queries_that_share_a_passage_or_a_text_stay_together(tmp_path):
    """Of 100 queries, three in a row are linked: by a passage, and by a text in another spelling."""
    positives = [[query if query % 3 != 1 else query - 1] for query in range(100)]
    texts = [f"Question {query - query % 3 // 2}?" for query in range(100)]
    texts[2::3] = [text.upper().replace("?", " !") for text in texts[1::3]]
    path = folder(tmp_path, positives, texts)
    settings = beir.Settings(path=path, holdout=HALVES)
    assert settings.judged() == {"train": True, "dev": True, "test": True}
    assert settings.expected()[2] == {"train": 60, "dev": 20, "test": 20}
    splits = splits_of(settings)
    assert len(splits["dev"]) in (18, 19) and len(splits["test"]) in (18, 19)
    split_of = {query: split for split, ids in splits.items() for query in ids}
    assert len(split_of) == 100
    for query in range(100):
        assert split_of[f"q{query}"] == split_of[f"q{query - query % 3}"]
    assert splits_of(settings) == splits
    assert splits_of(beir.Settings(path=path, holdout=HALVES, holdout_seed=1)) != splits
    write_collection(tmp_path / "out", settings.load())
    assert set(read_queries(tmp_path / "out", "dev")["query_id"]) == splits["dev"]
    about = settings.load().about
    assert about["holdout"]["largest group"] == 3
    assert about["queries"]["test"]["judged"] == len(splits["test"])
    judged = counts(settings.load()).splits
    assert {split: len(ids) for split, ids in splits.items()} == {
        split: judgments.queries for split, judgments in judged.items()
    }


@pytest.mark.parametrize(
    ("holdout", "message"),
    [
        ({"dev": 0.01}, "gives dev 0.01 of train, 0 of 10 queries, of which 0 can be held out"),
        ({"dev": 0.99}, "takes all 10 queries of train; expected smaller shares"),
    ],
)
def test_a_share_that_leaves_a_split_empty_is_refused(tmp_path, holdout, message):
    path = folder(tmp_path, [[query] for query in range(10)])
    with pytest.raises(InputError, match=message):
        beir.Settings(path=path, holdout=holdout).load()


def test_irrelevant_passages_do_not_keep_queries_together(tmp_path):
    path = folder(tmp_path, [[query] for query in range(10)])
    with open(tmp_path / "qrels/train.tsv", "a") as file:
        file.writelines(f"q{query}\tp0\t0\n" for query in range(1, 10))
    assert len(splits_of(beir.Settings(path=path, holdout={"dev": 0.5}))["dev"]) == 5


@pytest.mark.parametrize(
    ("holdout", "message"),
    [
        ({"dev": 1.0}, "holdout.dev is 1.0; expected "),
        ({"dev": 0.5, "test": 0.5}, "holdout takes 1 of train"),
        ({"train": 0.1}, "holdout names train, but"),
        ({"dev": 0.1}, "the largest group has 20; expected other"),
    ],
)
def test_shares_that_cannot_be_held_out_are_refused(tmp_path, holdout, message):
    path = folder(tmp_path, [[0]] * 20)
    with pytest.raises(InputError, match=message):
        settings = parse(beir.Settings, {"path": path, "holdout": holdout})
        settings.judged()
        settings.load()


def test_a_collection_without_training_queries_has_none_to_hold_out(tmp_path):
    path = folder(tmp_path, [[0], [1]], split="test")
    with pytest.raises(InputError, match=r"the split train, which .* \(judged splits: test\)"):
        beir.Settings(path=path, holdout={"dev": 0.1}).judged()


# --- every source ---------------------------------------------------------------------------------


def test_every_source_with_training_queries_of_the_user_s_can_hold_out():
    """The queries of pydocs are divided by its own files."""
    able = {
        name
        for name in collections.names()
        if "holdout" in rules_of(collections.source(name).Settings)
    }
    assert able == {"beir", "ir_datasets", "msmarco", "pairs", "pseudo", "text"}


def of_source(name, path):
    """A collection of 100 training queries, of which each two share a passage, or a text."""
    if name == "pairs":
        rows = [{"query": f"query {row}", "positive": f"passage {row // 2}"} for row in range(100)]
        (path / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        return pairs.Settings, {"path": str(path / "pairs.jsonl")}
    if name == "msmarco":
        (path / "collection.tsv").write_text("".join(f"{row}\ttext {row}\n" for row in range(50)))
        (path / "queries.train.tsv").write_text(
            "".join(f"{row}\tquery {row}\n" for row in range(100))
        )
        lines = [f"{row} 0 {row // 2} 1\n" for row in range(100)]
        (path / "qrels.train.tsv").write_text("".join(lines))
        return msmarco.Settings, {"path": str(path)}
    folder(path, [[row // 2] for row in range(100)])
    if name == "beir":
        return beir.Settings, {"path": str(path)}
    lines = [
        {"_id": f"p{row}", "text": f"Query {row // 2} of{'.' * (row % 2)} many. {'Word ' * 9}"}
        for row in range(100)
    ]
    (path / "corpus.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return pseudo.Settings, {"of": {"source": "beir", "path": str(path)}}


@pytest.mark.parametrize("source", ["beir", "msmarco", "pairs", "pseudo"])
def test_a_source_holds_out_pairs_of_queries_together(tmp_path, source):
    kind, values = of_source(source, tmp_path)
    held_out = parse(kind, {**values, "holdout": HALVES})
    assert held_out.judged() == {"train": True, "dev": True, "test": True}
    collection = held_out.load()
    groups = {}
    for split, frame in collection.queries.items():
        for text in frame["text"]:
            group = int("".join(filter(str.isdigit, text)))
            groups.setdefault(group if source == "pseudo" else group // 2, []).append(split)
    assert len(groups) == 50 and all(len(set(splits)) == 1 for splits in groups.values())
    sizes = {split: len(frame) for split, frame in collection.queries.items()}
    assert sizes == {"train": 60, "dev": 20, "test": 20}
    again = held_out.load().queries
    assert all(again[split].equals(frame) for split, frame in collection.queries.items())
    other = parse(kind, {**values, "holdout": HALVES, "holdout_seed": 1}).load().queries
    assert not other["dev"].equals(collection.queries["dev"])
    assert collection.about["holdout"]["shares"] == HALVES
    write_collection(tmp_path / "out", collection)
