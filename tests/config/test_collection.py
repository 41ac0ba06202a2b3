"""`collection` at the top of a config: the collection of every entry that names none."""

import pytest

from cdmae.config.load import load


@pytest.fixture
def written(tmp_path, monkeypatch):
    """A config of two collections in MS MARCO's layout, with three judged splits each."""
    monkeypatch.chdir(tmp_path)
    for name in ("mine", "theirs"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "collection.tsv").write_text("p1\tone text\np2\tanother text\n")
        for split in ("train", "dev", "test", "unjudged"):
            (tmp_path / name / f"queries.{split}.tsv").write_text("q1\ta query\nq2\tanother\n")
            if split != "unjudged":
                qrels = tmp_path / name / f"qrels.{split}.tsv"
                qrels.write_text("q1 0 p1 1\nq2 0 p2 1\n")
    one = {"kind": "retriever", "encoder": "cdmae", "stage": "one", "negatives": "bm25"}
    return {
        "collection": "mine",
        "collections": {name: {"source": "msmarco", "path": name} for name in ("mine", "theirs")},
        "starts": {"small": {"hidden": 8, "heads": 2, "layers": 1}},
        "importance": {"ami": {}},
        "encoders": {"cdmae": {"start": "small", "importance": "ami"}},
        "stages": {"one": {"kind": "retriever", "queries": 2, "group": 2}},
        "systems": {
            "bm25": {"kind": "bm25"},
            "one": one,
            "fused": {"kind": "fusion", "of": ["bm25", "one"], "tuned_on": ["dev"]},
        },
    }


def test_it_is_shorthand_for_the_same_config_with_all_names(written):
    config = load(written)
    assert config.starts["small"].collection == config.encoders["cdmae"].collection == "mine"
    assert config.stages["one"].collection == "mine"
    assert config.systems["fused"].tuned_on == ("mine", "dev")
    assert config.evaluation.collections == {"mine": ("dev", "test")}, "judged, not trained on"
    assert "collection" not in config.values()
    assert load(config.values()) == config


def test_entries_and_the_evaluation_may_name_others(written):
    evaluated = {"theirs": ["test"], "mine": ["dev"]}
    changed = {"training": {"collection": "theirs"}, "evaluation": {"collections": evaluated}}
    config = load(written | changed)
    assert config.stages["one"].collection == "theirs"
    assert config.encoders["cdmae"].collection == "mine"
    assert config.evaluation.collections == {"theirs": ("test",), "mine": ("dev",)}
