"""What is refused before any job: wrong configs in a sentence, and a second run at the same results."""

import os
import subprocess
import sys

import pytest

from tests.workflow.conftest import SMOKE, wait_for

pytestmark = pytest.mark.workflow

WRONG = {
    "no such file": (None, "nowhere.yaml cannot be read: No such file or directory"),
    "malformed": ("evaluation: {collections: [", "not YAML"),
    "key": ("importance: {ami: {windw: 3}}", "importance.ami.windw is not a setting; did you mean window?"),
    "value": ("importance: {ami: {window: 90}}", "importance.ami.window is 90; allowed: a whole number from 2 to 8"),
    "name": ("systems: {cdmae-stage1: {negatives: bm52}}", "cdmae-stage1.negatives is bm52; did you mean bm25?"),
    "circle": ("systems: {cdmae-stage1: {negatives: cdmae-stage2}}", "cdmae-stage1 -> cdmae-stage2 -> cdmae-stage1"),
    "data": ("collections: {pydocs: null, mine: {source: beir, path: nowhere}}", "collections.mine"),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_config_ends_in_a_sentence_before_any_job(code, overlay, case):
    text, sentence = WRONG[case]
    path = overlay(text) if text else "nowhere.yaml"
    said = code.run("--configfile", "config/smoke.yaml", path, status=1)
    assert sentence in said
    assert len(said.splitlines()) == 1
    assert not code.results.exists()


def test_snakemake_itself_refuses_it_too(code, overlay):
    """Without ./run, or with --config, the rules' own check speaks."""
    path = overlay(WRONG["key"][0])
    said = code.run("--configfile", "config/smoke.yaml", path, "--config", "seed=3", status=1)
    assert f"cdmae: {path}, line 1: {WRONG['key'][1]}" in said
    assert "Traceback" not in said and "rule " not in said
    assert not code.results.exists()


@pytest.mark.parametrize(
    ("arguments", "variables", "sentence"),
    [
        ((), {"CDMAE_DEVICE": "tpu"}, "cdmae: the environment variable CDMAE_DEVICE is tpu; allowed: cpu, gpu"),
        (("--cache", "tokens"), {"SNAKEMAKE_OUTPUT_CACHE": ""}, "cdmae: --cache needs the environment variable SNAKEM"),
    ],
)
def test_without_run_snakemake_refuses_what_is_around_it(code, arguments, variables, sentence):
    command = [sys.executable, "-m", "snakemake", "-n", *SMOKE, *arguments]
    found = subprocess.run(command, cwd=code.folder, env=os.environ | variables, capture_output=True, text=True)
    said = found.stdout + found.stderr
    assert found.returncode == 1
    assert sentence in said and "Traceback" not in said


def test_two_runs_at_once(fresh):
    first = fresh.start(*SMOKE, "results/smoke/encoders/cdmae")  # takes longer than the second needs to start
    lock = fresh.results / ".lock"
    wait_for(lambda: lock.exists() and lock.read_text())
    said = fresh.run(*SMOKE, "results/smoke/bm25/pydocs", status=1)
    assert said.splitlines()[-1].startswith(f"cdmae: another run (process {first.pid} on ")
    assert "is working on results/smoke; wait for it" in said
    first.communicate()
    assert first.returncode == 0
    assert not (fresh.results / "bm25").exists()


def test_what_a_job_ends_with_stands_last(fresh, overlay):
    """Behind all that Snakemake says, with its log; and nothing is trained that could not be used."""
    path = overlay("collections: {pydocs: {train_queries: 0}}\ntraining: {queries: 5000}\n")
    said = fresh.run(*SMOKE, path, status=1).splitlines()
    log = "results/smoke/logs/collection/pydocs.log"
    assert said[-1].startswith(f"{log}: cdmae: stages.stage1.queries is 5000; allowed: up to ")
    assert not (fresh.results / "encoders").exists()
