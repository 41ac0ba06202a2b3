"""Resources that jobs request: by the network and the work of a job, more at further attempts."""

import pytest

from cdmae.config.load import load
from cdmae.plan import prices, resources
from cdmae.plan.planned import Job, Planned
from cdmae.plan.prices import Price

A100_HOUR = 312e12 * 0.45 * 3600


@pytest.fixture
def wide(values, toy, monkeypatch):
    """Return a function that prices every job: the small config with wide layers."""
    values["starts"]["small"]["hidden"] = 256
    planned = Planned(load(values))

    def priced(flops=0.0, start=0.0, seconds=0.0, memory=0.0):
        price = Price(flops, start, seconds, 0.0, memory)
        monkeypatch.setattr(prices, "price", lambda planned, job: price)
        return planned

    return priced


@pytest.mark.parametrize("rule", ["pretrain", "train_retriever", "train_reranker"])
def test_long_trainings_request_the_gpus_of_a_node(wide, rule):
    name = {"pretrain": "cdmae", "train_retriever": "one", "train_reranker": "cross"}[rule]
    assert resources.gpus(wide(1.9 * A100_HOUR), Job(rule, name)) == 1
    assert resources.gpus(wide(2.1 * A100_HOUR), Job(rule, name)) == 8


def test_no_more_gpus_than_texts_of_a_step(wide, values):
    values["training"] = values.get("training", {}) | {"queries": 3}
    planned = wide(9 * A100_HOUR)
    planned.config = load(values)
    assert resources.gpus(planned, Job("train_retriever", "one")) == 3


def test_other_rules_request_one_gpu_or_none(wide):
    planned = wide(9 * A100_HOUR)
    assert resources.gpus(planned, Job("teacher", "three")) == 1
    assert resources.gpus(planned, Job("mine", "one/docs/train")) == 1
    assert resources.gpus(planned, Job("vectors_external", "foreign/docs")) == 1
    assert resources.gpus(planned, Job("search_bm25", "bm25")) == 0
    assert resources.gpus(planned, Job("untrained", "none")) == 0


def test_narrow_networks_request_one_core_and_no_gpu(values, toy):
    planned = Planned(load(values))
    for rule, name in (("pretrain", "cdmae"), ("teacher", "three"), ("vectors", "one/docs")):
        assert resources.gpus(planned, Job(rule, name)) == 0
        assert resources.cores(planned, Job(rule, name), 8) == 1
    assert resources.cores(planned, Job("vectors_external", "foreign/docs"), 8) == 8


def test_the_time_limit_is_three_times_the_estimate_and_at_most_a_day_where_a_rule_resumes(wide):
    bm25 = Job("search_bm25", "bm25", threads=2)
    priced = wide(start=60.0, seconds=7200.0)
    assert [resources.minutes(priced, bm25, attempt) for attempt in (1, 2)] == [183, 366]
    long = wide(20 * A100_HOUR)
    assert resources.minutes(long, Job("vectors", "one/docs", gpus=1), 1) == 3600
    training = Job("train_retriever", "one", gpus=1)
    assert [resources.minutes(long, training, attempt) for attempt in (1, 3)] == [1440, 1440]
    short = wide(start=1.0)
    assert resources.minutes(short, training, 1) == 30
    assert resources.minutes(short, Job("collection", "docs"), 1) == 240


def test_memory_has_a_margin_a_minimum_and_grows_with_the_attempt(wide):
    job = Job("ngrams", "ami/small/docs")
    assert [resources.megabytes(wide(memory=8e9), job, attempt) for attempt in (1, 3)] == [
        10_000,
        30_000,
    ]
    assert resources.megabytes(wide(memory=1e6), job, 2) == 8000


def test_unknown_sizes_request_the_resources_of_a_large_collection(values, toy):
    values["starts"]["small"]["hidden"] = 256
    planned = Planned(load(values))
    training = Job("train_retriever", "one")
    assert resources.gpus(planned, training) == 8
    assert [resources.megabytes(planned, training, attempt) for attempt in (1, 2)] == [
        64_000,
        128_000,
    ]
    assert resources.minutes(planned, training, 2) == 1440
    assert resources.minutes(planned, Job("ngrams", "ami/small/docs"), 2) == 2880
