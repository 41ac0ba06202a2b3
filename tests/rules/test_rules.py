"""The rules fit their scripts, and the profile of SLURM its options."""

import inspect
import runpy
from pathlib import Path
from types import SimpleNamespace

from cdmae.job import arguments

ROOT = Path(__file__).resolve().parents[2]


def test_every_rule_runs_a_script_whose_function_gets_its_arguments(grown, monkeypatch):
    """The adapter fills a function's parameters by their names."""
    calls = []
    monkeypatch.setattr("cdmae.job.run", lambda function, _: calls.append(function))
    monkeypatch.setattr("cdmae.job._state", lambda _: Path("state"))
    monkeypatch.setattr("cdmae.job.read_tokens", Path)
    monkeypatch.setattr(Path, "mkdir", lambda *_, **__: None)
    jobs = {name: job for name, job in grown.items() if job.detail.rule.script}
    rules = next(iter(jobs.values())).detail.rule.workflow.rules
    scripts = {rule.name: Path(rule.script).stem for rule in rules if rule.script}
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
        parameters = inspect.signature(function).parameters.items()
        needed = {key for key, each in parameters if each.default is inspect.Parameter.empty}
        given = arguments(function, snakemake)
        assert needed <= given.keys(), (name, needed - given.keys())
        read = [path for path in job.reads if "/runs/" in path or "/vectors/" in path]
        passed = str(list(given.values()))
        if name[0] != "report":  # which depends on runs that its trainings read, too
            assert all(path in passed for path in read), (name, given)
