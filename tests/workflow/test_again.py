"""What runs again: nothing without a change, and after a change exactly what depends on it."""

import pytest

from tests.workflow.conftest import SMOKE

pytestmark = pytest.mark.workflow

TRAINED = [
    "none-stage1", "mae-stage1", "cdmae-stage1", "mae-stage1@43", "cdmae-stage1@43",
    "cdmae-stage2", "cdmae-stage3", "matcher", "cdmae-reranker",
]  # fmt: skip


def test_a_second_run_has_nothing_to_do(finished):
    said = finished.run(*SMOKE)
    assert "Nothing to be done" in said
    last = said.splitlines()[-1]
    assert last == "report: results/smoke/report/index.html", "as after the first run"


def test_a_changed_setting_is_a_reason(smoke, overlay):
    """`rules/test_graph.py` has the jobs that each setting restarts."""
    assert smoke.plan(overlay("stages: {stage3: {alpha: 0.5}}"))["train cdmae-stage3"] == 1
    assert "reason: alpha was 4.0 and is 0.5\n" in smoke.said


def test_a_change_in_the_kl_restarts_what_imports_it_and_a_comment_nothing(finished):
    finished.edit("cdmae/pretraining/trainer.py", "\ndef ", "\n# The training of an encoder.\ndef ")
    finished.edit("workflow/scripts/call.py", "\nif __name", "\n# How it begins.\nif __name")
    finished.edit("cdmae/finetuning/losses.py", ".sum(-1).mean()", ".sum(-1).mean() * 1.0")
    found = finished.plan()
    trained = {job.removeprefix("train ") for job in found if job.startswith("train ")}
    assert trained == set(TRAINED)
    kept = {"collection", "tokenizer", "tokens", "importance", "masked_terms", "pretrain", "bm25"}
    assert not kept & {job.split()[0] for job in found}
    assert "reason: code of cdmae.finetuning.losses\n" in finished.said
