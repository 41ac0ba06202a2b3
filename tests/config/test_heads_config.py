"""Retrievers with several heads, and third-party teachers, in a config."""

from pathlib import Path

import pytest

from cdmae.config import systems
from cdmae.config.load import load
from cdmae.config.reading import gather
from cdmae.errors import InputError

FILES = Path(__file__).resolve().parents[2] / "config"


def values(*overlays):
    """The values of the default with overlays, as dictionaries that may be changed."""
    return gather(FILES / "config.yaml", [FILES / f"{name}.yaml" for name in overlays])


def changed(found, **entries):
    """The config with other entries of `systems`."""
    return load({**found, "systems": {**found["systems"], **entries}})


def test_heads_are_systems_that_encode_nothing():
    config = load(values("unified"))
    row = systems.systems(config)["unified-sparse"]
    assert (row["folder"], row["start"]) == ("unified", "tiny")
    assert systems.sparse(config) == ["unified-sparse", "unified-hard-sparse"]
    dense = [name for name, system in config.systems.items() if system.is_dense(config)]
    assert dense == ["cdmae-stage1", "unified-dense", "unified-hard-dense"]
    mined = {name for name, *_ in systems.mined(config)}
    assert mined == {"bm25", "unified-both", "unified-dense", "unified-sparse"}


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        (
            {"kind": "head", "of": "cdmae-stage1", "uses": "dense"},
            r"of is cdmae-stage1.*\(unified, unified-",
        ),
        ({"kind": "head", "of": "unified"}, "uses is missing"),
        (
            {"kind": "head", "of": "unified", "uses": "dense", "engine": "lucene"},
            "engine is lucene, but nothing in the config says that the vectors are sparse",
        ),
        (
            {"kind": "feedback", "of": "unified"},
            "of is unified, .* expected a dense system",
        ),
        (
            {"kind": "feedback", "of": "unified-sparse"},
            "of is unified-sparse, .* expected a dense system",
        ),
    ],
)
def test_systems_that_do_not_fit_their_heads_are_refused(entry, words):
    with pytest.raises(InputError, match=words):
        changed(values("unified"), mistaken=entry)


def test_a_third_party_model_teaches_by_its_run_over_the_training_queries():
    found = values()
    theirs = {"kind": "external", "model": "nobody/nothing"}
    student = {**found["systems"]["cdmae-stage3"], "teacher": "theirs"}
    with pytest.raises(
        InputError, match="theirs, the teacher of systems.cdmae-stage3, scores only"
    ):
        changed(found, theirs=theirs, **{"cdmae-stage3": student})
    stages = {**found["stages"]}
    stages["stage3"] = {**stages["stage3"], "random_negatives": 0}
    config = changed({**found, "stages": stages}, theirs=theirs, **{"cdmae-stage3": student})
    assert systems.systems(config)["cdmae-stage3"]["ranking"] == "theirs.pydocs.train"
    assert systems.mined(config)["theirs", "pydocs", "train"] == config.evaluation.depth
    stage = config.stages["stage3"]
    assert "teacher_temperature" in stage.values()
    assert "teacher_temperature" not in stage.values(teacher=False)


def test_prefixes_as_long_as_a_vector_are_refused():
    found = values("matryoshka")
    stages = {**found["stages"]}
    stages["matryoshka"] = {**stages["matryoshka"], "prefixes": [64, 128]}
    with pytest.raises(InputError, match=r"prefixes is \[64, 128\], but vectors of starts.tiny ha"):
        load({**found, "stages": stages})
