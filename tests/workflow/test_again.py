"""What runs again: nothing without a change, and after a change exactly what depends on it."""

import re
import shutil
from collections import Counter

import pytest

from tests.workflow.conftest import SMOKE, jobs

pytestmark = pytest.mark.workflow

MEASURED = ["measures cdmae-stage3", "measures fused", "report"]
STAGE3 = [
    "train cdmae-stage3", "encode cdmae-stage3,pydocs", "encode cdmae-stage3,scikit-learn",
    "search cdmae-stage3,evaluated", "fuse fused,evaluated", "release cdmae-stage3", *MEASURED,
]  # fmt: skip


def test_a_second_run_has_nothing_to_do(finished):
    said = finished.run(*SMOKE)
    assert "Nothing to be done" in said
    choice, masking, where = said.splitlines()[-3:]
    assert choice.startswith("What should I use here? ")
    assert masking.startswith("Did masking by importance help here? ")
    assert where == "report: results/smoke/report/index.html", "as after the first run"
    assert finished.plan() == Counter()
    assert "report: " not in finished.said


def test_alpha_is_a_matter_of_stage_3(smoke, overlay):
    assert smoke.plan(overlay("stages: {stage3: {alpha: 0.5}}")) == Counter(STAGE3)
    assert "reason: alpha was 4.0 and is 0.5\n" in smoke.said


def test_an_encoder_after_another_and_a_step_of_its_training(finished, overlay):
    """Keeping a step makes the training again, in the same bits; all that was upstream is shared."""
    trained = finished.results / "encoders/mae/model.safetensors"
    before = trained.read_bytes()
    more = overlay("encoders: {both: {after: mae}, early: {snapshot_of: mae, take_step: 10}}")
    targets = [f"results/smoke/encoders/{name}" for name in ("both", "early")]
    assert jobs(finished.run(*SMOKE, more, *targets)) == Counter(
        ["pretrain mae", "pretrain both", "snapshot early"]
    )
    assert trained.read_bytes() == before
    found = {
        name: (finished.results / f"encoders/{name}/model.safetensors").read_bytes()
        for name in ("both", "early")
    }
    assert len({before, *found.values()}) == 3


def test_the_evaluation_restarts_no_training(smoke, overlay):
    found = smoke.plan(overlay("evaluation: {measures: [RR@10, R@50, nDCG@10, P@1]}"))
    assert {job.split()[0] for job in found} == {
        "measures",
        "release",
        "report",
    }


def test_vectors_that_are_not_kept_leave_the_same_runs(finished, overlay):
    """Of a zero-shot collection, of two splits searched together, and of training queries."""
    shutil.rmtree(finished.results / "vectors")
    targets = [f"results/smoke/runs/cdmae-stage1/{part}" for part in ("evaluated", "pydocs.train")]
    runs = [
        finished.folder / targets[0] / "scikit-learn.test.parquet",
        finished.folder / targets[0] / "pydocs.dev.parquet",
        finished.folder / targets[1] / "pydocs.train.parquet",
    ]
    before = [path.read_bytes() for path in runs]
    kept = overlay("evaluation: {keep_vectors: false}")
    assert jobs(finished.run(*SMOKE, kept, *targets)) == Counter(
        ["search cdmae-stage1,evaluated", "search cdmae-stage1,pydocs.train"]
    )
    assert [path.read_bytes() for path in runs] == before
    assert not (finished.results / "vectors").exists()
    assert finished.plan(kept, *targets) == Counter()


def test_a_change_in_the_kl_restarts_what_imports_it_and_a_comment_nothing(finished):
    finished.edit("cdmae/pretraining/trainer.py", "\ndef ", "\n# The training of an encoder.\ndef ")
    finished.edit("workflow/scripts/pretrain.py", "\nif __name", "\n# How it begins.\nif __name")
    finished.edit("cdmae/finetuning/losses.py", ".sum(-1).mean()", ".sum(-1).mean() * 1.0")
    found = finished.plan()
    assert {job for job in found if job.startswith("train ")} == {
        f"train {name}" for name in (
            "none-stage1", "mae-stage1", "cdmae-stage1", "mae-stage1@43", "cdmae-stage1@43",
            "cdmae-stage2", "cdmae-stage3", "cdmae-reranker")
    }  # fmt: skip
    kept = {"collection", "tokenizer", "tokens", "ngrams", "importance", "masked_terms", "pretrain", "index_bm25",
            "bm25"}  # fmt: skip
    assert not kept & {job.split()[0] for job in found}
    assert "reason: code of cdmae.finetuning.losses" in finished.said
    brief = finished.run(*SMOKE, "-n")
    assert re.search(r"^train +8 +code of cdmae.finetuning.losses$", brief, flags=re.MULTILINE)
    assert len(brief.splitlines()) < 30 and max(map(len, brief.splitlines())) <= 200
