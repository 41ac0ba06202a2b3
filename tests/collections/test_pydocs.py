"""Documentation strings as a collection: settings, sizes, splits, and the same bytes on every run."""

import os
import subprocess
import sys
from itertools import combinations
from pathlib import Path

import pytest
from made_up import make_package, text

from cdmae.collections import Counts
from cdmae.collections.sources import pydocs
from cdmae.collections.sources.pydocs import cleaning, division
from cdmae.errors import InputError
from cdmae.fields import parse

REPOSITORY = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def smoke():
    return pydocs.Settings(size="smoke").load()


def test_smoke_is_a_sensible_collection(smoke):
    assert 800 <= len(smoke.passages) <= 1500
    assert smoke.about["versions"] == {"python": pydocs.Settings(size="smoke").version()["python"]}
    assert set(smoke.passages["title"].to_pylist()) == {""}
    lengths = [len(passage.split()) for passage in smoke.passages["text"].to_pylist()]
    assert cleaning.MIN_BODY <= min(lengths) <= max(lengths) <= 120
    assert smoke.about["passages"] == len(smoke.passages)
    ids = smoke.passages["passage_id"].to_pylist()
    assert len(set(ids)) == len(ids)
    for split in ("train", "dev", "test"):
        assert set(smoke.qrels[split]["query_id"]) == set(smoke.queries[split]["query_id"])
        assert not set(smoke.queries[split]["query_id"]) & set(ids)
        assert len(smoke.queries[split]) > 30


def test_smoke_queries_of_different_splits_share_no_passage_and_no_twin(smoke):
    split_of = {}
    for split, judged in smoke.qrels.items():
        for passage in judged["passage_id"]:
            assert split_of.setdefault(passage, split) == split
    ids, texts = smoke.passages["passage_id"].to_pylist(), smoke.passages["text"].to_pylist()
    pairs = [(ids[i], ids[j]) for i, j in division.near_duplicates(texts)]
    assert all(
        split_of.get(one, split_of.get(other)) == split_of.get(other, split_of.get(one))
        for one, other in pairs
    )
    seen = [set(map(division.key_of, frame["text"])) for frame in smoke.queries.values()]
    assert all(not one & other for one, other in combinations(seen, 2))


def test_passages_hold_no_markup_and_not_their_query(smoke):
    texts = dict(
        zip(*(smoke.passages[name].to_pylist() for name in ("passage_id", "text")), strict=True)
    )
    for split, frame in smoke.queries.items():
        queries = dict(zip(frame["query_id"], frame["text"], strict=True))
        for query, passage in smoke.qrels[split][["query_id", "passage_id"]].itertuples(
            index=False
        ):
            assert queries[query].casefold() not in texts[passage].casefold()
    joined = "\n".join(texts.values())
    for markup in ("`", ">>>", ":class:", ":param", "\n.. ", " .. ", "http://", "https://", "----"):
        assert markup not in joined


def test_the_same_bytes_in_another_process_and_in_two(tmp_path):
    script = "import sys; from cdmae.collections.sources import pydocs; "
    script += "from cdmae.collections.store import write_collection; "
    script += "pydocs.SMOKE = ('asyncio', 'builtins'); processes = int(sys.argv[2]); "
    script += "collection = pydocs.Settings(size='smoke').load(threads=processes); "
    script += "write_collection(sys.argv[1], collection)"
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(REPOSITORY)}
        subprocess.run(
            [sys.executable, "-c", script, str(tmp_path / seed), seed], check=True, env=environment
        )
    for path in (tmp_path / "1").iterdir():
        assert path.read_bytes() == (tmp_path / "2" / path.name).read_bytes(), path.name


def synthetic(tmp_path, monkeypatch, number=40):
    modules = {
        f"m{i}.py": f'def f():\n    """Return item number {i} of all. {text(i).title()}."""\n'
        for i in range(number)
    }
    make_package(tmp_path, monkeypatch, {"__init__.py": "", **modules}, name="networkx_made_up")
    monkeypatch.setattr(pydocs, "IN_DOMAIN", ("networkx_made_up",))
    monkeypatch.setitem(pydocs.HELD_OUT, "networkx", "networkx_made_up")


def test_train_queries_are_a_nested_choice(tmp_path, monkeypatch):
    synthetic(tmp_path, monkeypatch)
    judged = {"train": (None, 1), "dev": (None, 1), "test": (None, 1)}
    assert pydocs.Settings(size="smoke").check() == Counts(splits=judged)
    few = pydocs.Settings(size="smoke", train_queries=5)
    assert few.check() == Counts(splits=judged | {"train": (5, 1)})
    all_, ten, five = (pydocs.Settings(train_queries=number).load() for number in (0, 10, 5))
    chosen = [set(collection.queries["train"]["query_id"]) for collection in (all_, ten, five)]
    assert list(map(len, chosen[1:])) == [10, 5]
    assert chosen[0] > chosen[1] > chosen[2]
    assert set(five.qrels["train"]["query_id"]) == chosen[2]
    assert five.passages.equals(all_.passages)
    assert five.queries["test"].equals(all_.queries["test"])
    assert five.about["queries"]["train"] == {"read": len(chosen[0]), "judged": 5, "judgments": 5}
    with pytest.raises(InputError, match=r"train_queries is 1000; allowed: 0 \(all\) to"):
        pydocs.Settings(train_queries=1000).load()


def test_further_queries_lose_their_judgments(tmp_path, monkeypatch):
    """They follow the training queries in the same order, so that more of these take theirs."""
    synthetic(tmp_path, monkeypatch)
    settings = pydocs.Settings(train_queries=5, unlabelled=6)
    assert settings.judged()["unlabelled"] is False
    collection = settings.load()
    further = set(collection.queries["unlabelled"]["query_id"])
    assert len(further) == 6 and "unlabelled" not in collection.qrels
    plain, more = (pydocs.Settings(train_queries=number).load() for number in (5, 11))
    assert collection.queries["train"].equals(plain.queries["train"])
    assert further | set(plain.queries["train"]["query_id"]) == set(
        more.queries["train"]["query_id"]
    )
    with pytest.raises(InputError, match=r"unlabelled is 1000; allowed: 0 to .*, the number of ot"):
        pydocs.Settings(train_queries=5, unlabelled=1000).load()
    with pytest.raises(InputError, match="unlabelled is 6, but train_queries is 0, which keeps"):
        parse(pydocs.Settings, {"unlabelled": 6})


def test_a_held_out_package_is_all_test(tmp_path, monkeypatch):
    synthetic(tmp_path, monkeypatch)
    settings = pydocs.Settings(part="networkx")
    assert settings.judged() == {"test": True}
    collection = settings.load()
    assert list(collection.queries) == ["test"]
    assert len(collection.queries["test"]) == len(collection.passages) == 40
    assert 0 < len(pydocs.Settings(part="networkx", size="smoke").load().passages) < 20


def test_a_limit_that_would_do_nothing_is_refused():
    with pytest.raises(
        InputError,
        match="train_queries is 5, but the held-out part networkx has no training queries",
    ):
        parse(pydocs.Settings, {"part": "networkx", "train_queries": 5})


def test_a_package_that_is_not_installed_is_named(monkeypatch):
    monkeypatch.setattr(pydocs, "IN_DOMAIN", ("no_such_package",))
    with pytest.raises(InputError, match="the package no_such_package is not installed"):
        pydocs.Settings().check()
