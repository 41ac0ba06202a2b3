"""The published recipes as overlays on the paper's config: each adds its entries, and plans."""

from functools import cache
from pathlib import Path

import pytest
from planned import records

from cdmae.config.load import load
from cdmae.config.reading import gather
from cdmae.config.schema import SECTIONS
from cdmae.report.paper import published

ROOT = Path(__file__).resolve().parents[2]
NAMES = sorted(path.stem for path in (ROOT / "config/recipes").glob("*.yaml"))


@cache
def layered(*names):
    """The paper's config with some recipes on it."""
    recipes = [ROOT / f"config/recipes/{name}.yaml" for name in names]
    return load(gather(ROOT / "config/config.yaml", [ROOT / "config/paper.yaml", *recipes]))


@pytest.mark.parametrize("name", NAMES)
def test_a_recipe_adds_its_entries_to_the_paper_s_and_is_planned(name):
    paper, config = layered(), layered(name)
    together = layered(*NAMES)
    for section in SECTIONS:
        ours, theirs = getattr(paper, section), getattr(config, section)
        assert ours.items() <= theirs.items() <= getattr(together, section).items()
    jobs = {(job.rule, job.name) for job in records(config.values(), gpus=8)}
    assert {("pretrain", name), ("train", f"{name}-stage1"), ("train", f"{name}-stage2")} <= jobs
    first, second = (config.systems[f"{name}-stage{number}"] for number in (1, 2))
    assert (first.encoder, first.negatives) == (name, "bm25")
    assert (second.encoder, second.negatives) == (name, f"{name}-stage1")


def test_a_recipe_stands_in_the_rows_of_its_method():
    """After stage 1 and 2 in table 2, and after its last published stage in table 1."""
    rows = layered(*NAMES).report.methods
    in_table_1 = {
        row: system for row, system in rows.items() if row in published.tables()["table 1"]
    }
    assert in_table_1 == {
        "BM25": "bm25",
        "CDMAE": "cdmae-stage3",
        "SimLM": "simlm-stage3",
        "CoT-MAE": "cotmae-stage2",
        "Condenser": "condenser-stage2",
        "coCondenser": "cocondenser-stage2",
        "SEED": "seed-stage2",
    }
    for method in ("RetroMAE", "SimLM", "CoT-MAE", "coCondenser", "MASTER"):
        name = method.lower().replace("-", "")
        for stage in (1, 2):
            assert rows[f"{method}, stage {stage}"] == f"{name}-stage{stage}"
    assert "RetroMAE" not in rows, "its start is pre-trained on general text"
