"""Every setting of a system and of the evaluation changes what a job is asked to do."""

from collections import defaultdict

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


def allowed(values, section, name, key, other):
    """The config with another value of a setting; None if it is refused."""
    entries = values[section]
    own = {**entries[name], key: other} if name else other
    changed_values = {**values, section: {**entries, name or key: own}}
    try:
        load(changed_values)
    except InputError:
        return None
    return changed_values


def test_every_setting_of_a_system_changes_what_a_job_is_asked_to_do(values):
    """Of one system of its kind at least; the page and the cards, which show all, do not count.

    Each changed system is a further system of one config, which is planned once.
    """
    head = {"kind": "retriever", "depth": 20}
    values["stages"] |= {name: head | {"head": name} for name in ("sparse", "multi", "unified")}
    values["stages"]["terms"] = head | {"head": "sparse", "pieces": "own", "target": "recall"}
    values["systems"] |= MORE
    values["evaluation"]["collections"] = {"docs": ["dev"]}
    variants = {}
    grown = dict(values["systems"])
    for name, entry in load(values).systems.items():
        for key, rule in tried(entry).items():
            for other in others(key, rule, getattr(entry, key), VALUES):
                trial = allowed(values, "systems", name, key, other)
                if trial:
                    variant = f"{name}-{key}"
                    variants[variant] = name, type(entry), key
                    grown[variant] = trial["systems"][name]
                    break
    jobs = defaultdict(dict)
    for (rule, wildcards), job in plan({**values, "systems": grown}).items():
        system, _, part = wildcards.partition("/")
        original = variants.get(system, [system])[0]
        if rule != "release":
            jobs[system][rule, part] = {each.replace(system, original) for each in job.reasons}
    found = defaultdict(set)
    for variant, (name, kind, key) in variants.items():
        if any(jobs[name].get(job) != reasons for job, reasons in jobs[variant].items()):
            found[kind].add(key)
    silent = {kind.__name__: tried(kind).keys() - found[kind] for kind in kinds_of(AnySystem)}
    assert not any(silent.values()), f"{silent}: {REMEDY}"


def test_every_setting_of_the_evaluation_changes_what_a_job_is_asked_to_do(values):
    before = plan(values)
    evaluation = load(values).evaluation
    silent = []
    for key, rule in tried(Evaluation).items():
        trials = (
            allowed(values, "evaluation", "", key, other)
            for other in others(key, rule, getattr(evaluation, key), VALUES)
        )
        trial = next(filter(None, trials), values)
        after = plan(trial)
        if before.keys() == after.keys() and not changed(before, after):
            silent.append(key)
    assert not silent, f"{silent}: {REMEDY}"


def test_the_seed_of_an_entry_reaches_its_jobs(values):
    values["encoders"]["mae"]["seed"] = 3
    values["stages"]["stage1"]["seed"] = 4
    values["stages"]["rerank"]["seed"] = 5
    jobs = plan(values)
    assert jobs["pretrain", "mae"].params["settings"]["seed"] == 3
    assert jobs["train", "one"].params["settings"]["seed"] == 4
    assert jobs["train", "cross"].params["settings"]["seed"] == 5
