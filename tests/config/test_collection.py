"""`collection` at the top of a config: what everything means that names no collection."""

import pytest

from cdmae.config.load import load


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Two collections in MS MARCO's layout with three judged splits each."""
    monkeypatch.chdir(tmp_path)
    for name in ("mine", "theirs"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "collection.tsv").write_text("p1\tone text\np2\tanother text\n")
        for split in ("train", "dev", "test", "unjudged"):
            (tmp_path / name / f"queries.{split}.tsv").write_text("q1\ta query\nq2\tanother\n")
            if split != "unjudged":
                qrels = tmp_path / name / f"qrels.{split}.tsv"
                qrels.write_text("q1 0 p1 1\nq2 0 p2 1\n")
    return tmp_path


def values(**changed):
    """A config that names its collection once, with other values of some sections."""
    return {
        "results": "out",
        "collection": "mine",
        "collections": {
            "mine": {"source": "msmarco", "path": "mine"},
            "theirs": {"source": "msmarco", "path": "theirs"},
        },
        "starts": {"small": {"hidden": 8, "heads": 2, "layers": 1}},
        "importance": {"ami": {}},
        "encoders": {"cdmae": {"start": "small", "importance": "ami"}},
        "stages": {"one": {"kind": "retriever", "queries": 2, "group": 2}},
        "systems": {
            "bm25": {"kind": "bm25"},
            "first": {
                "kind": "retriever", "encoder": "cdmae", "stage": "one", "negatives": "bm25",
            },
            "fused": {"kind": "fusion", "of": ["bm25", "first"], "tuned_on": ["dev"]},
        },
        **changed,
    }  # fmt: skip


def test_everything_that_names_no_collection_means_it(folder):
    config = load(values())
    assert config.starts["small"].collection == "mine"
    assert config.encoders["cdmae"].collection == "mine"
    assert config.stages["one"].collection == "mine"
    assert config.systems["fused"].tuned_on == ("mine", "dev")
    assert config.evaluation.collections == {"mine": ("dev", "test")}, "judged, not trained on"


def test_it_is_shorthand_for_the_same_config_with_all_names(folder):
    config = load(values())
    whole = config.values()
    assert "collection" not in whole
    assert load(whole) == config


def test_entries_and_the_evaluation_may_name_others(folder):
    changed = {
        "training": {"collection": "theirs"},
        "evaluation": {"collections": {"theirs": ["test"], "mine": ["dev"]}},
    }
    config = load(values(**changed))
    assert config.stages["one"].collection == "theirs"
    assert config.encoders["cdmae"].collection == "mine"
    assert config.evaluation.collections == {"theirs": ("test",), "mine": ("dev",)}
