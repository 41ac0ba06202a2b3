"""Several seeds: what a seed decides exists once for each, made from its like; the first seed's
jobs stay.
"""

import re

import pytest
from made_up import make_model
from planned import changed, plan

from cdmae.config.load import load
from cdmae.config.seeds import base, first
from cdmae.errors import InputError
from workflow.facts import facts as report_facts

SEEDS = [7, 8, 9]  # the tests' config has seed 7


@pytest.fixture
def config(values):
    return load(values | {"seeds": SEEDS})


@pytest.fixture
def jobs(values):
    return plan(values | {"seeds": SEEDS})


@pytest.mark.parametrize(
    ("seeds", "sentence"),
    [
        ([7, -1], "seeds[1] is -1; allowed: a whole number from 0"),
        (
            [7, 8, 8],
            "seeds is [7, 8, 8]; allowed: distinct seeds that begin with `seed`, 7, or [] for that seed alone",
        ),
        (
            [8, 7],
            "seeds is [8, 7]; allowed: distinct seeds that begin with `seed`, 7, or [] for that seed alone",
        ),
    ],
)
def test_seeds_that_cannot_be(values, seeds, sentence):
    with pytest.raises(InputError) as caught:
        load(values | {"seeds": seeds})
    assert str(caught.value) == sentence


def test_names_tell_seeds():
    assert base("mae@43") == base("mae") == "mae"
    assert first(["mae", "mae@43", "bm25"]) == ["mae", "bm25"]


@pytest.mark.parametrize("section", ["encoders", "stages", "systems"])
def test_no_name_of_a_config_can_be_that_of_a_replica(values, section):
    values[section]["x@8"] = {}
    with pytest.raises(
        InputError, match=f"{section} has the name x@8; allowed: up to 64 letters, digits, - and _"
    ):
        load(values)


def test_what_a_seed_decides_exists_once_per_seed_and_again_from_its_written_values(config, values):
    alone = load(values)
    for section in ("encoders", "stages", "systems"):
        shared = {"bm25", "foreign"} if section == "systems" else set()
        names = list(getattr(alone, section))
        replicas = [f"{name}@{seed}" for seed in SEEDS[1:] for name in names if name not in shared]
        assert list(getattr(config, section)) == names + replicas
    assert config.encoders["cdmae@9"].seed == config.stages["stage1@9"].seed == 9
    assert config.collections == alone.collections and config.seed == 7
    assert load(values | {"seeds": [7]}).systems == alone.systems
    again = load(config.values())
    assert (again.encoders, again.stages, again.systems) == (
        config.encoders,
        config.stages,
        config.systems,
    )


def test_a_replica_is_made_from_replicas_of_its_seed_and_from_what_has_none(config, jobs):
    systems = config.systems
    assert (systems["one@8"].encoder, systems["one@8"].stage) == ("cdmae@8", "stage1@8")
    assert systems["one@8"].negatives == "bm25"
    assert (systems["cross@8"].negatives, systems["cross@8"].reranks) == ("one@8", "one@8")
    assert (systems["three@9"].negatives, systems["three@9"].teacher) == ("one@9", "cross@9")
    assert systems["fused@8"].of == ("bm25", "three@8")
    three = jobs["train", "three@8"]
    assert three.params["settings"]["seed"] == 8
    assert three.inputs["encoder"] == ["out/encoders/cdmae@8"]
    assert three.inputs["negatives"] == ["out/runs/one@8/docs.train"]
    assert three.inputs["teacher"] == ["out/teachers/three@8.parquet"]
    assert jobs["teacher", "three@8"].inputs["model"] == ["out/trained/cross@8"]
    assert jobs["teacher", "three@8"].params["settings"]["settings"]["seed"] == 8
    assert jobs["rerank", "cross@8/evaluated"].inputs["runs"] == ["out/runs/one@8/evaluated"]


def test_more_seeds_leave_the_jobs_of_the_first_as_they_are(jobs, values):
    before, after = plan(values), jobs
    assert not changed(before, after)
    assert all(after[key].inputs == before[key].inputs for key in before.keys() - {("report", "")})
    added = sorted(after.keys() - before.keys())
    assert {name.partition("@")[0] for _, name in added} == {
        "mae",
        "cdmae",
        "one",
        "cross",
        "three",
        "fused",
    }
    decided = re.compile(r"(mae|cdmae|one|cross|three|fused)(/|$)")
    repeated = sorted((rule, name) for rule, name in before if decided.match(name))
    repeated.remove(("masked_terms", "cdmae"))  # shown for the first seed
    for collection in ("docs", "other"):  # kept for `./run search`, and for negatives
        repeated.remove(("encode", f"three/{collection}"))
    assert [(rule, name.replace("@8", "")) for rule, name in added if "@8" in name] == repeated
    assert [(rule, name.replace("@9", "")) for rule, name in added if "@9" in name] == repeated
    assert len(added) == 2 * len(repeated)


def test_the_report_reads_every_seed_s_measures_and_the_first_seed_s_curves(config):
    facts = report_facts(config)
    assert facts["measures"]["one@9"] == "out/measures/one@9.tsv"
    assert list(facts["trained"]) == ["one", "cross", "three"]
    assert list(facts["encoders"]) == ["none", "mae", "cdmae"]
    assert facts["config"]["seeds"] == SEEDS
    assert not [
        name for name in (*facts["config"]["encoders"], *facts["config"]["systems"]) if "@" in name
    ]


def test_an_entry_with_a_seed_of_its_own_is_trained_once_and_what_no_seed_decides_has_no_replicas(
    values,
):
    values["encoders"]["mae"]["seed"] = 3
    found = load(values | {"seeds": SEEDS})
    assert "mae@8" not in found.encoders
    assert (found.systems["cross@8"].encoder, found.systems["cross@8"].stage) == ("mae", "rerank@8")
    values["stages"]["stage1"]["seed"] = values["encoders"]["cdmae"]["seed"] = 3
    assert (
        "one@8" not in load(values | {"seeds": SEEDS}).systems
    )  # neither its encoder nor its stage has replicas
    assert "three@8" in load(values | {"seeds": SEEDS}).systems
    values["systems"]["both"] = {"kind": "fusion", "of": ["bm25", "foreign"]}
    assert "both@8" not in load(values | {"seeds": SEEDS}).systems


def test_a_checkpoint_as_it_is_has_no_replicas_but_what_is_trained_from_it(values, tmp_path):
    values["starts"]["bert"] = {"checkpoint": make_model(tmp_path)}
    values["encoders"]["none"] = {"objective": "none", "start": "bert"}
    values["encoders"]["more"] = {"start": "bert"}
    values["systems"]["plain"] = {**values["systems"]["one"], "encoder": "none"}
    found = load(values | {"seeds": SEEDS})
    assert "none@8" not in found.encoders and "more@8" in found.encoders
    assert found.systems["plain@8"].encoder == "none"


def test_what_comes_before_an_encoder_is_of_its_seed(values):
    values["encoders"] |= {
        "both": {"after": "mae"}, "early": {"snapshot_of": "cdmae", "take_step": 5},
        "once": {"seed": 3}, "later": {"after": "once"},
    }  # fmt: skip
    values["systems"]["early"] = {**values["systems"]["one"], "encoder": "early"}
    found = load(values | {"seeds": SEEDS})
    assert (found.encoders["both@8"].after, found.encoders["both@8"].seed) == ("mae@8", 8)
    assert found.encoders["early@9"].snapshot_of == "cdmae@9"
    assert found.encoders["later@8"].after == "once"
    jobs = plan(values | {"seeds": SEEDS})
    assert jobs["pretrain", "cdmae@8"].params["settings"]["snapshots"] == [5]
    assert jobs["snapshot", "early@8"].inputs == {"encoder": ["out/encoders/cdmae@8"]}
    assert jobs["train", "early@8"].inputs["encoder"] == ["out/encoders/early@8"]


def test_a_system_trained_once_has_no_replicas_and_takes_the_first_of_its_inputs(values):
    values["systems"]["three"]["once"] = True
    values["systems"]["cross"]["once"] = True
    found = load(values | {"seeds": SEEDS})
    assert "one@8" in found.systems
    assert not {"three@8", "cross@8", "fused@8"} & set(found.systems)
    assert (found.systems["three"].encoder, found.systems["three"].teacher) == ("cdmae", "cross")
    alone = plan({**values, "seeds": []})
    several = plan(values | {"seeds": SEEDS})
    assert not changed(alone, several)
    assert load(found.values()).systems == found.systems
