"""What is refused before any job: wrong configs in a sentence, and a second run at the same
results.
"""

import subprocess
import sys

import pytest

from tests.workflow.conftest import SMOKE, wait_for

pytestmark = pytest.mark.workflow


def test_a_wrong_config_ends_in_a_sentence_before_any_job(smoke, overlay):
    """Of several mistakes each in a line of its own; by ./run and by a bare snakemake."""
    path = overlay("importance: {ami: {windw: 3}}\nstages: {stage1: {kind: retriver}}")
    command = [sys.executable, "-m", "snakemake", "-n", *SMOKE, path]
    bare = subprocess.run(command, cwd=smoke.folder, capture_output=True, text=True)
    assert bare.returncode == 1 and "Traceback" not in bare.stderr
    for said in (bare.stderr, smoke.run(*SMOKE, path, "--config", "seed=3", status=1)):
        *_, first, second = said.splitlines()
        mistake = "importance.ami.windw is not a setting; did you mean window?"
        assert first == f"cdmae: {path}, line 1: {mistake}"
        assert second.startswith(f"cdmae: {path}, line 2: stages.stage1.kind is retriver; ")


def test_two_runs_at_once(finished):
    made = finished.results / "tokens/tiny/pydocs"
    before = made.stat().st_mtime
    # a training takes longer than the second run needs to start
    first = finished.start(*SMOKE, "results/smoke/encoders/cdmae", "--force")
    lock = finished.results / ".lock"
    wait_for(lambda: lock.read_text().startswith(f"process {first.pid} "))
    said = finished.run(*SMOKE, "results/smoke/tokens/tiny/pydocs", "--force", status=1)
    assert said.startswith(f"cdmae: another run (process {first.pid} on "), "the first line"
    first.communicate()
    assert first.returncode == 0 and made.stat().st_mtime == before


def test_what_a_job_ends_with_stands_last(finished, overlay):
    """Behind all that Snakemake says, with its log."""
    (finished.folder / "bad.csv").write_text("query,positive\none,two\nthree\n")
    path = overlay("collections: {bad: {source: pairs, path: bad.csv}}\n")
    target = "results/smoke/collections/bad/about.json"
    last = finished.run(*SMOKE, path, target, status=1).splitlines()[-1]
    assert last.startswith("results/smoke/logs/collection/bad.log: cdmae: collections.bad: ")
    assert "bad.csv, line 3" in last
