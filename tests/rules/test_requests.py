"""Every setting of a system and of the evaluation changes what a job is asked to do."""

from collections import defaultdict

import pytest
from other_values import REMEDY, VALUES, others, tried
from planned import changed, plan

from cdmae.config.kinds import AnySystem
from cdmae.config.load import load
from cdmae.config.schema import Evaluation
from cdmae.errors import InputError
from cdmae.fields import kinds_of

MORE = {
    "all": {"kind": "retriever", "encoder": "mae", "stage": "sparse", "negatives": "bm25"},
    "terms": {"kind": "retriever", "encoder": "mae", "stage": "terms", "negatives": "bm25", "engine": "bm25"},
    "late": {"kind": "retriever", "encoder": "mae", "stage": "multi", "negatives": "bm25", "candidates": "bm25"},
    "both": {"kind": "retriever", "encoder": "mae", "stage": "unified", "negatives": "bm25"},
    "half": {"kind": "head", "of": "both", "uses": "sparse"},
    "lexical": {"kind": "external", "model": "some/model", "head": "sparse"},
    "matched": {"kind": "external", "model": "some/model", "head": "multi", "candidates": "bm25"},
}  # fmt: skip


@pytest.fixture
def every_kind(values):
    """The tests' config with systems of every kind, between which each setting acts somewhere."""
    head = {"kind": "retriever", "depth": 20}
    values["stages"] |= {name: head | {"head": name} for name in ("sparse", "multi", "unified")}
    values["stages"]["terms"] = head | {"head": "sparse", "pieces": "own", "target": "recall"}
    values["systems"] |= MORE
    values["evaluation"]["collections"] = {"docs": ["dev"]}
    return values


def acting(values, section, name, before, known=()):
    """The settings of an entry of which another value changes what a job is asked to do.

    known: settings that need not be tried.
    """
    entry = getattr(load(values), section)
    entry = entry[name] if name else entry
    for key, rule in tried(entry).items():
        for other in [] if key in known else others(key, rule, getattr(entry, key), VALUES):
            own = {**values[section][name], key: other} if name else other
            try:
                after = plan({**values, section: {**values[section], name or key: own}})
            except InputError:
                continue
            if before.keys() != after.keys() or changed(before, after):
                yield key
            break


def test_every_setting_of_a_system_changes_what_a_job_is_asked_to_do(every_kind):
    """Of one system of its kind at least; the page, which shows every setting, does not count."""
    before = plan(every_kind)
    found = defaultdict(set)
    for name, entry in load(every_kind).systems.items():
        kind = found[type(entry)]
        kind |= {*acting(every_kind, "systems", name, before, kind)}
    silent = {kind.__name__: tried(kind).keys() - found[kind] for kind in kinds_of(AnySystem)}
    assert not any(silent.values()), f"{silent}: {REMEDY}"


def test_every_setting_of_the_evaluation_changes_what_a_job_is_asked_to_do(values):
    silent = tried(Evaluation).keys() - {*acting(values, "evaluation", "", plan(values))}
    assert not silent, f"{silent}: {REMEDY}"


def test_the_seed_of_an_entry_reaches_its_jobs(values):
    values["encoders"]["mae"]["seed"] = 3
    values["stages"]["stage1"]["seed"] = 4
    values["stages"]["rerank"]["seed"] = 5
    jobs = plan(values)
    assert jobs["pretrain", "mae"].params["settings"]["seed"] == 3
    assert jobs["train", "one"].params["settings"]["seed"] == 4
    assert jobs["train", "cross"].params["settings"]["seed"] == 5
