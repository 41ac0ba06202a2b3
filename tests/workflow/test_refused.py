"""What is refused before any job: wrong configs in a sentence, and a second run at the same
results.
"""

import signal
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
    made, other = (f"results/smoke/tokens/tiny/{name}" for name in ("pydocs", "scikit-learn"))
    before = [(finished.folder / path).stat().st_mtime for path in (made, other)]
    first = finished.start(*SMOKE, made, "--force")
    lock = finished.results / ".lock"
    wait_for(lambda: lock.read_text().startswith(f"process {first.pid} "))
    first.send_signal(signal.SIGSTOP)  # until the second has tried
    said = finished.run(*SMOKE, other, "--force", status=1)
    first.send_signal(signal.SIGCONT)
    assert said.splitlines()[-1].startswith(f"cdmae: another run (process {first.pid} on ")
    assert "because of" not in said, "before the table of the jobs"
    first.communicate()
    after = [(finished.folder / path).stat().st_mtime for path in (made, other)]
    assert first.returncode == 0 and after[0] > before[0] and after[1] == before[1]
