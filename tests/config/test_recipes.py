"""The published recipes as config files over the paper's: each is what its table says, fits the
others, and plans.
"""

from functools import cache
from pathlib import Path

import pytest
from planned import records

from cdmae.collections.sources.ir_datasets import catalogue
from cdmae.config.load import load
from cdmae.config.reading import gather
from cdmae.plan.machine import Machine
from cdmae.plan.plan import Plan, text
from cdmae.pretraining.trainer import schedule
from cdmae.report.paper import published

ROOT = Path(__file__).resolve().parents[2]
RECIPES = sorted((ROOT / "config/recipes").glob("*.yaml"))
NAMES = [path.stem for path in RECIPES]

# Typed from the published scripts a second time. masks: ratios of encoder and decoder; rates:
# learning rate, share of the steps that warm up, weight decay.
RETROMAE = {
    "start": "Shitao/RetroMAE", "masks": (0.3, 0.5), "batch": 1024, "steps": 172_692, "last": 172_692,
    "max_length": 150, "rates": (1e-4, 0.1, 0.01),
}  # fmt: skip
CONDENSER = {
    "start": "bert-base-uncased", "masks": (0.15, None), "batch": 2048, "steps": 34_539, "last": 34_539,
    "max_length": 150, "rates": (1e-4, 0.1, 0.01), "decoder_layers": 2, "early_layers": 6,
}  # fmt: skip
PRETRAINING = {
    "retromae": RETROMAE,
    "dupmae": {**RETROMAE, "bag_weight": 0.1},
    "simlm": {
        "start": "bert-base-uncased", "masks": (0.3, 0.5), "batch": 2048, "steps": 80_000, "last": 80_000,
        "max_length": 144, "rates": (3e-4, 4000 / 80_000, 0.0), "decoder_layers": 2, "mask_share": 1.0,
        "random_share": 0.0, "generator": "google/electra-base-generator",
    },
    "master": {
        "start": "bert-base-uncased", "masks": (0.3, 0.5), "batch": 2048, "steps": 172_692, "last": 80_000,
        "max_length": 128, "rates": (3e-4, 0.1, 0.01), "decoder_layers": 2, "decoder_masking": "inverse_frequency",
    },
    "cotmae": {
        "start": "bert-base-uncased", "masks": (0.3, 0.45), "batch": 512, "steps": 800_000, "last": 800_000,
        "max_length": 128, "rates": (1e-4, 0.1, 0.01), "decoder_layers": 2,
    },
    "condenser": CONDENSER,
    "contriever": {
        "start": "bert-base-uncased", "masks": (0.3, None), "batch": 2048, "steps": 500_000, "last": 500_000,
        "max_length": 256, "rates": (5e-5, 0.04, 0.01), "pooling": "mean", "crop_least": 0.05, "crop_most": 0.5,
        "deletion": 0.1, "temperature": 0.05,
    },
    "lexmae": {
        "start": "bert-base-uncased", "masks": (0.3, 0.5), "batch": 2048, "steps": 86_346, "last": 86_346,
        "max_length": 144, "rates": (3e-4, 0.05, 0.01), "decoder_layers": 2, "encoder_masking": "uniform",
        "decoder_masking": "uniform", "max_grad_norm": 1e9,
    },
    "seed": {
        "start": "bert-base-uncased", "masks": (0.15, None), "batch": 2048, "steps": 86_346, "last": 80_000,
        "max_length": 150, "rates": (3e-4, 0.1, 0.01), "decoder_layers": 3, "attention_span": 2,
    },
    "rom": {  # the paper's values, for want of its own
        "start": "bert-base-uncased", "masks": (0.3, None), "batch": 2048, "steps": 86_346, "last": 80_000,
        "max_length": 150, "rates": (3e-4, 0.1, 0.01), "objective": "mlm", "encoder_masking": "importance",
    },
    "cocondenser": {**CONDENSER, "start": "Luyu/condenser"},
    "bowdpr": {
        "start": "bowdpr/bowdpr_wiki", "masks": (0.3, None), "batch": 2048, "steps": 80_000, "last": 80_000,
        "max_length": 144, "rates": (3e-4, 4000 / 80_000, 0.01), "bag_weight": 1.0,
    },
}  # fmt: skip
# of each stage: queries, group, epochs, learning rate, warm-up (steps or a share), lengths of queries
# and passages, random negatives
STAGES = {
    "retromae": [(128, 16, 4, 2e-5, 0, 32, 140, 0)] * 2,
    "dupmae": [(128, 16, 4, 2e-5, 0, 32, 140, 0)] * 2,
    "simlm": [(64, 16, 3, 2e-5, 1000, 32, 144, 10)] * 2 + [(64, 24, 6, 3e-5, 1000, 32, 144, 10)],
    "master": [
        (64, 32, pytest.approx(3.8176, abs=1e-3), 5e-6, 1000, 32, 128, 0),
        (64, 32, pytest.approx(5.0901, abs=1e-3), 5e-6, 1000, 32, 128, 0),
    ],
    "cotmae": [(64, 16, 3, 2e-5, 0.1, 32, 128, 0), (64, 16, 2, 2e-5, 0.1, 32, 128, 0)],
    "condenser": [(64, 8, 3, 5e-6, 0.1, 32, 128, 0), (64, 8, 2, 5e-6, 0.1, 32, 128, 0)],
    "cocondenser": [(64, 8, 3, 5e-6, 0.1, 32, 128, 0), (64, 8, 2, 5e-6, 0.1, 32, 128, 0)],
    "contriever": [(64, 32, 3, 2e-5, 1000, 32, 144, 0)] * 2,
    "lexmae": [(24, 16, 3, 2e-5, 0.05, 32, 144, 0)] * 2,
    "seed": [(64, 32, 3, 2e-5, 1000, 32, 128, 0)] * 2,
    "rom": [(64, 32, 3, 2e-5, 1000, 32, 144, 10)] * 2,
    "bowdpr": [(64, 16, 3, 2e-5, 1000, 32, 144, 0)] * 2,
}
DEPTHS = {"lexmae-stage1": 1000}  # negatives; 200 in all others


@cache
def layered(*names):
    """A checked config: the paper's with some recipes over it."""
    overlays = [
        ROOT / "config/paper.yaml",
        *(ROOT / f"config/recipes/{name}.yaml" for name in names),
    ]
    return load(gather(ROOT / "config/config.yaml", overlays))


@pytest.mark.parametrize("name", NAMES)
def test_its_pretraining_is_the_published_one(name):
    config, expected = layered(name), PRETRAINING[name]
    encoder = config.encoders[name]
    passages = catalogue.counts(config.collections[encoder.collection].settings.dataset, "docs")
    plan = schedule(encoder, passages)
    found = {
        "start": config.starts[encoder.start].checkpoint,
        "masks": (
            encoder.encoder_ratio,
            encoder.decoder_ratio if "decoder_ratio" in encoder.values() else None,
        ),
        "steps": plan.steps,
        "last": plan.last,
        "rates": (encoder.learning_rate, encoder.warmup_ratio, encoder.weight_decay),
    }
    assert {key: found.get(key, getattr(encoder, key, None)) for key in expected} == expected
    assert encoder.objective == expected.get("objective", name)
    assert encoder.encoder_masking == expected.get("encoder_masking", "whole_word")
    assert list(encoder.maskings[1:]) in ([], [expected.get("decoder_masking", "whole_word")])


@pytest.mark.parametrize("name", NAMES)
def test_its_stages_are_the_published_ones(name):
    config = layered(name)
    keys = (
        "queries", "group", "epochs", "learning_rate", "warmup_steps", "query_length",
        "passage_length", "random_negatives",
    )  # fmt: skip
    negatives = "bm25"
    for number, expected in enumerate(STAGES[name], start=1):
        system = config.systems[f"{name}-stage{number}"]
        stage = config.stages[system.stage]
        assert tuple(getattr(stage, key) for key in keys) == expected
        assert stage.depth == DEPTHS.get(f"{name}-stage{number}", 200) and stage.in_batch
        assert (system.encoder, system.negatives) == (name, negatives)
        negatives = f"{name}-stage{number}"


def test_simlm_distils_from_the_papers_reranker():
    config = layered("simlm")
    reranker, last = config.systems["simlm-reranker"], config.systems["simlm-stage3"]
    assert last.teacher == "simlm-reranker" and reranker.negatives == "simlm-stage2"
    assert config.encoders[reranker.encoder].start == "electra"


@pytest.mark.parametrize("name", NAMES)
def test_a_recipe_stands_beside_the_paper_and_is_planned(name):
    """It adds entries and changes none of the paper's; its jobs follow from it."""
    paper, config = layered(), layered(name)
    for section in ("collections", "starts", "importance", "encoders", "stages", "systems"):
        ours, theirs = getattr(paper, section), getattr(config, section)
        assert {key: theirs[key] for key in ours} == ours
    jobs = records(config.values(), gpus=8)
    names = {(job.rule, job.name) for job in jobs}
    assert {
        ("pretrain", name),
        ("train", f"{name}-stage2"),
        ("measures", f"{name}-stage1"),
    } <= names
    assert "GPU-hours" in text(Plan(config), Machine(64, 8, "h200"))


def test_all_recipes_together_are_what_each_is_alone():
    together = layered(*NAMES)
    for name in NAMES:
        for section in ("starts", "encoders", "stages", "systems"):
            assert getattr(layered(name), section).items() <= getattr(together, section).items()
    assert set(PRETRAINING) == set(NAMES), "each has its table"


def test_a_recipe_stands_in_the_rows_of_its_method():
    """After stage 1 and 2 in table 2, and after its last published stage in table 1."""
    rows = layered(*NAMES).report.methods
    in_table_1 = {row: system for row, system in rows.items() if row in published.rows("table 1")}
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
