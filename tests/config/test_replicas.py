"""Several seeds: each training exists once per seed, made from its like; the first seed's jobs
stay.
"""

import pytest
from made_up import make_model
from planned import changed, plan

from cdmae.config.load import load

SEEDS = [7, 8, 9]  # the tests' config has seed 7


@pytest.fixture
def config(values):
    return load(values | {"seed": SEEDS})


@pytest.fixture
def jobs(values):
    return plan(values | {"seed": SEEDS})


def test_what_a_seed_decides_exists_once_per_seed_and_again_from_its_written_values(config, values):
    alone = load(values)
    for section in ("encoders", "stages", "systems"):
        shared = {"bm25", "foreign"} if section == "systems" else set()
        names = list(getattr(alone, section))
        replicas = [f"{name}@{seed}" for seed in SEEDS[1:] for name in names if name not in shared]
        assert list(getattr(config, section)) == names + replicas
    assert config.encoders["cdmae@9"].seed == config.stages["stage1@9"].seed == 9
    assert config.collections == alone.collections and config.seed == (7, 8, 9)
    assert load(config.values()) == config and load(alone.values()) == alone


def test_a_replica_is_made_from_replicas_of_its_seed_and_from_what_has_none(config, jobs):
    systems = config.systems
    assert (systems["one@8"].encoder, systems["one@8"].stage) == ("cdmae@8", "stage1@8")
    assert (systems["one@8"].negatives, systems["cross@8"].reranks) == ("bm25", "one@8")
    assert (systems["three@9"].negatives, systems["three@9"].teacher) == ("one@9", "cross@9")
    assert systems["fused@8"].of == ("bm25", "three@8")
    three = jobs["train", "three@8"]
    assert three.params["settings"]["seed"] == 8
    assert three.inputs["encoder"] == ["out/encoders/cdmae@8"]
    assert three.inputs["negatives"] == ["out/runs/one@8/docs.train"]
    assert three.inputs["teacher"] == ["out/teachers/three@8.parquet"]
    assert jobs["teacher", "three@8"].inputs["model"] == ["out/trained/cross@8"]
    assert jobs["teacher", "three@8"].params["settings"]["settings"]["seed"] == 8


def test_more_seeds_leave_the_jobs_of_the_first_as_they_are(jobs, values):
    before = plan(values)
    assert changed(before, jobs) == {("release", "")}, "one job for all models"
    of_all = {(rule, "") for rule in ("report", "release", "measures")}
    assert all(jobs[key].inputs == before[key].inputs for key in before.keys() - of_all)
    added = {(rule, name.partition("@")[0]) for rule, name in jobs.keys() - before.keys()}
    trained = {("pretrain", "mae"), ("train", "one"), ("train", "cross"), ("teacher", "three")}
    assert trained | {("fuse", "fused")} <= added
    assert not [rule for rule, name in added if rule in ("collection", "bm25", "masked_terms")]
    report = jobs["report", ""]
    assert "out/measures/one@9.tsv" in report.inputs["measures"]
    names = ("none", "mae", "cdmae")
    assert report.inputs["encoders"] == [f"out/encoders/{name}" for name in names]


ONCE = {"once": True}


@pytest.mark.parametrize(
    ("section", "entries", "absent", "present"),
    [
        # a seed of its own
        ("encoders", {"mae": {"seed": 3}}, ["mae"], ["cdmae", "cross"]),
        # an encoder after another one
        ("encoders", {"once": {"seed": 3}, "both": {"after": "once"}}, ["once"], ["both"]),
        # systems that are trained once, and those that are not trained
        ("systems", {"three": ONCE, "cross": ONCE}, ["three", "cross", "fused"], ["one"]),
        ("systems", {"both": {"kind": "fusion", "of": ["bm25", "foreign"]}}, ["both"], ["fused"]),
    ],
)
def test_what_no_seed_decides_has_no_replicas(values, section, entries, absent, present):
    for name, entry in entries.items():
        values[section][name] = values[section].get(name, {}) | entry
    found = load(values | {"seed": SEEDS})
    names = {*found.encoders, *found.stages, *found.systems}
    assert not {f"{name}@8" for name in absent} & names
    assert {f"{name}@8" for name in present} <= names
    if "both" in found.encoders:
        assert (found.encoders["both@8"].after, found.encoders["both@8"].seed) == ("once", 8)


def test_a_checkpoint_as_it_is_has_no_replicas_but_what_is_trained_from_it(values, tmp_path):
    values["starts"]["bert"] = {"checkpoint": make_model(tmp_path)}
    values["encoders"]["none"] = {"objective": "none", "start": "bert"}
    values["encoders"]["more"] = {"start": "bert"}
    values["systems"]["plain"] = {**values["systems"]["one"], "encoder": "none"}
    found = load(values | {"seed": SEEDS})
    assert "none@8" not in found.encoders and "more@8" in found.encoders
    assert found.systems["plain@8"].encoder == "none"
