"""What is refused before any job: wrong configs in a sentence, and a second run at the same
results.
"""

import subprocess
import sys

import pytest

from tests.workflow.conftest import SMOKE, wait_for

pytestmark = pytest.mark.workflow

WRONG = "importance: {ami: {windw: 3}}"
MISTAKE = "importance.ami.windw is not a setting; did you mean window?"


@pytest.mark.parametrize("more", [(), ("--config", "seed=3")], ids=["alone", "with --config"])
def test_a_wrong_config_ends_in_a_sentence_before_any_job(code, overlay, more):
    path = overlay(WRONG)
    *before, said = code.run(*SMOKE, path, *more, status=1).splitlines()
    assert said == f"cdmae: {path}, line 1: {MISTAKE}"
    assert not [line for line in before if not line.startswith("Using workflow specific profile ")]
    assert not code.results.exists()


def test_without_run_snakemake_refuses_it_too(code, overlay):
    """Of several mistakes each in a line of its own."""
    path = overlay(f"{WRONG}\nstages: {{stage1: {{kind: retriver}}}}")
    command = [sys.executable, "-m", "snakemake", "-n", *SMOKE, path]
    ended = subprocess.run(command, cwd=code.folder, capture_output=True, text=True)
    assert ended.returncode == 1 and "Traceback" not in ended.stderr
    *_, first, second = ended.stderr.splitlines()
    assert first == f"cdmae: {path}, line 1: {MISTAKE}"
    assert second.startswith(f"cdmae: {path}, line 2: stages.stage1.kind is retriver; ")


def test_two_runs_at_once(finished):
    made = finished.results / "tokens/tiny/pydocs"
    before = made.stat().st_mtime
    # a training takes longer than the second run needs to start
    first = finished.start(*SMOKE, "results/smoke/encoders/cdmae", "--force")
    lock = finished.results / ".lock"
    wait_for(lambda: lock.read_text().startswith(f"process {first.pid} "))
    said = finished.run(*SMOKE, "results/smoke/tokens/tiny/pydocs", "--force", status=1)
    assert said.splitlines()[-1].startswith(f"cdmae: another run (process {first.pid} on ")
    assert "is working on results/smoke; wait for it" in said
    first.communicate()
    assert first.returncode == 0
    assert made.stat().st_mtime == before


def test_what_a_job_ends_with_stands_last(fresh, overlay):
    """Behind all that Snakemake says, with its log; and nothing is trained that could not be used."""
    path = overlay("collections: {pydocs: {train_queries: 0}}\ntraining: {queries: 5000}\n")
    said = fresh.run(*SMOKE, path, status=1).splitlines()
    log = "results/smoke/logs/collection/pydocs.log"
    assert said[-1].startswith(f"{log}: cdmae: stages.stage1.queries is 5000; expected up to ")
    assert not (fresh.results / "encoders").exists()
