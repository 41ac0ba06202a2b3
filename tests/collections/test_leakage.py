"""Held-out queries: no passage and no text is in two splits, and every draw can be repeated."""

from small_collections import write_beir

from cdmae import collections
from cdmae.collections.sources import beir

HALVES = {"dev": 0.2, "test": 0.2}


def folder(path, positives, texts=None, further=()):
    """A collection in BEIR's layout; positives: the relevant passage of each query."""
    texts = texts or [f"query number {query}" for query in range(len(positives))]
    passages = {f"p{name}": f"passage {name}" for name in sorted(set(positives))}
    queries = {f"q{query}": text for query, text in enumerate(texts)}
    rows = [(f"q{query}", f"p{passage}", 1) for query, passage in enumerate(positives)]
    return write_beir(path, passages, queries, train=[*rows, *further])["path"]


def splits_of(settings):
    queries = settings.load().queries
    return {split: set(frame["query_id"]) for split, frame in queries.items()}


def test_queries_that_share_a_passage_or_a_text_stay_together(tmp_path):
    """Of 100 queries, three in a row are linked: by a passage, and by a text in another spelling."""
    positives = [query if query % 3 != 1 else query - 1 for query in range(100)]
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
    counts = {split: len(ids) for split, ids in splits.items()}
    assert collections.relevant_queries(settings.load()) == counts


def test_irrelevant_passages_do_not_keep_queries_together(tmp_path):
    irrelevant = [(f"q{query}", "p0", 0) for query in range(1, 10)]
    path = folder(tmp_path, range(10), further=irrelevant)
    assert len(splits_of(beir.Settings(path=path, holdout={"dev": 0.5}))["dev"]) == 5
