"""The rules fit their scripts, and the profile of SLURM its options."""

import dataclasses
import inspect
import pkgutil
import re
import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest
from snakemake.api import SnakemakeApi
from snakemake.settings.types import OutputSettings, Quietness, ResourceSettings

from cdmae.job import arguments

ROOT = Path(__file__).resolve().parents[2]
SLURM = ROOT / "workflow/profiles/slurm/profile.yaml"


@pytest.fixture(scope="module")
def scripts(rules):
    """The name of each rule's script."""
    return {rule.name: Path(rule.script).stem for rule in rules if rule.script}


def test_every_rule_runs_a_script_whose_function_gets_its_arguments(grown, scripts, monkeypatch):
    """The adapter fills a function's parameters by their names."""
    calls = []
    monkeypatch.setattr("cdmae.job.run", lambda function, _: calls.append(function))
    monkeypatch.setattr("cdmae.job._state", lambda _: Path("state"))
    monkeypatch.setattr("cdmae.job.read_tokens", Path)
    monkeypatch.setattr(Path, "mkdir", lambda *_, **__: None)
    jobs = {name: job for name, job in grown.items() if job.detail.rule.script}
    assert {rule for rule, _ in jobs} == scripts.keys()
    assert {path.stem for path in ROOT.glob("workflow/scripts/*.py")} == {*scripts.values()}
    for name, job in jobs.items():
        script = scripts[name[0]]
        called = job.params.get("call", f"workflow.scripts.{script}.main")
        assert called.rpartition(".")[0] in job.params["code"], name
        parts = ("input", "output", "params", "wildcards", "threads", "resources")
        snakemake = SimpleNamespace(**{part: getattr(job.detail, part) for part in parts})
        path = ROOT / f"workflow/scripts/{script}.py"
        runpy.run_path(str(path), {"snakemake": snakemake}, run_name="__main__")
        function = calls[-1]
        if isinstance(function, str):
            function = pkgutil.resolve_name(function)
        parameters = inspect.signature(function).parameters.items()
        needed = {key for key, each in parameters if each.default is inspect.Parameter.empty}
        given = arguments(function, snakemake)
        assert needed <= given.keys(), (name, needed - given.keys())
        read = [path for path in job.reads if "/runs/" in path or "/vectors/" in path]
        passed = str(list(given.values()))
        if name[0] != "report":  # which depends on runs that its trainings read, too
            assert all(path in passed for path in read), (name, given)


def test_snakemakes_linter_has_nothing_to_say(monkeypatch):
    monkeypatch.chdir(ROOT)
    with SnakemakeApi(OutputSettings(quiet={Quietness.ALL})) as api:
        assert not api.workflow(ResourceSettings(cores=1), snakefile=ROOT / "Snakefile").lint()


def test_all_keys_of_the_profile_of_slurm_are_options():
    """Also the keys that are comments."""
    from snakemake.cli import get_argument_parser

    slurm = pytest.importorskip("snakemake_executor_plugin_slurm")
    own = {field.name for field in dataclasses.fields(slurm.ExecutorSettings)}
    options = {name for action in get_argument_parser()._actions for name in action.option_strings}
    keys = re.findall(r"^(?:# )?([a-z][a-z-]+):(?: |$)", SLURM.read_text(), flags=re.MULTILINE)
    assert len(keys) > 10
    for key in keys:
        plugin = key.removeprefix("slurm-").replace("-", "_")
        assert f"--{key}" in options or plugin in own, key
