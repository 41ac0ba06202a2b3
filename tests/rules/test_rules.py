"""The rules, the graph and the scripts tell the same story."""

import dataclasses
import inspect
import re
import runpy
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml
from made_up import make_model
from planned import plan
from snakemake.api import SnakemakeApi
from snakemake.settings.types import OutputSettings, Quietness, ResourceSettings

from cdmae.job import arguments
from cdmae.report.paper import published
from workflow.fingerprint import fingerprint

ROOT = Path(__file__).resolve().parents[2]
CHAPTERS = re.findall(
    r'^ *include: "rules/(\w+)\.smk"',
    (ROOT / "workflow/Snakefile").read_text(),
    flags=re.MULTILINE,
)
TEXT = "".join((ROOT / f"workflow/rules/{chapter}.smk").read_text() for chapter in CHAPTERS)


@pytest.fixture(scope="module")
def jobs(rules):
    """The rules that run a script: its name, by the rule's."""
    return {rule.name: Path(rule.script).stem for rule in rules if rule.script}


@pytest.fixture
def planned(values, tmp_path):
    """A job of every kind of entry."""
    return [job for job in every_job(values, tmp_path).values() if job.detail.rule.script]


def test_every_chapter_is_included():
    assert sorted(CHAPTERS) == sorted(path.stem for path in (ROOT / "workflow/rules").glob("*.smk"))


def test_every_rule_runs_a_script_and_depends_on_its_code(jobs, planned):
    assert {job.record.rule for job in planned} == jobs.keys()
    for job in planned:
        assert f"workflow/scripts/{jobs[job.record.rule]}.py" in job.params["code"], job.record
    assert {path.stem for path in ROOT.glob("workflow/scripts/*.py")} == set(jobs.values())


def test_every_script_has_the_arguments_that_its_function_needs(jobs, planned, monkeypatch):
    """The adapter fills a function's parameters by their names."""
    calls = []
    monkeypatch.setattr("cdmae.job.run", lambda function, _, **more: calls.append((function, more)))
    monkeypatch.setattr("cdmae.job._state", lambda _: Path("state"))
    monkeypatch.setattr(Path, "mkdir", lambda *_, **__: None)
    for job in planned:
        script = ROOT / f"workflow/scripts/{jobs[job.record.rule]}.py"
        names = ("input", "output", "params", "wildcards", "threads", "resources")
        snakemake = SimpleNamespace(**{name: getattr(job.detail, name) for name in names})
        runpy.run_path(str(script), {"snakemake": snakemake}, run_name="__main__")
        function, more = calls[-1]
        needed = {
            key
            for key, parameter in inspect.signature(function).parameters.items()
            if parameter.default is inspect.Parameter.empty
        }
        given = arguments(function, snakemake, **more)
        assert needed <= given.keys(), (job.record, needed - given.keys())
        read = [path for path in job.record.inputs if "/runs/" in path or "/vectors/" in path]
        passed = str(list(given.values()))
        assert all(path in passed for path in read), (job.record, given)


def every_job(values, folder):
    """The jobs of a config that uses every rule."""
    (folder / "theirs.run").touch()
    runs = {"docs": dict.fromkeys(("train", "dev", "test"), str(folder / "theirs.run"))}
    runs["other"] = {"test": str(folder / "theirs.run")}
    values["encoders"]["early"] = {"snapshot_of": "cdmae", "take_step": 2}
    values["systems"]["foreign"]["head"] = "sparse"
    retriever, student = values["systems"]["one"], values["systems"]["three"]
    stage = values["stages"][retriever["stage"]]
    values["stages"]["unified"] = stage | {"head": "unified", "temperature": 1}
    values["stages"]["own"] = values["stages"]["stage3"] | {"random_negatives": 0}
    values["systems"] |= {
        "theirs": {"kind": "run", "runs": runs},
        "four": student | {"teacher": "theirs", "stage": "own"},
        "five": retriever | {"encoder": "early", "negatives": "fused"},
        "six": retriever | {"negatives": "foreign"},
        "fed": {"kind": "feedback", "of": "one"},
        "seven": retriever | {"negatives": "fed"},
        "both": retriever | {"stage": "unified"},
        "half": {"kind": "head", "of": "both", "uses": "sparse"},
    }
    of = values["collections"]["docs"]
    model = make_model(folder / "t5", is_encoder_decoder=True, vocab_size=9)
    values["collections"] |= {
        "more": {"source": "expanded", "of": of, "model": model},
        "made": {
            "source": "pseudo", "of": of, "method": "written", "keywords_of": ["ami", "small", "docs"],
        },
    }  # fmt: skip
    written = [f"out/collections/{name}/about.json" for name in ("more", "made")]
    more = ("table_latency", "out/trec/bm25/docs.dev.run", *written)
    return plan(values, "all", *more)


def test_snakemakes_linter_has_nothing_to_say(monkeypatch):
    monkeypatch.chdir(ROOT)
    with SnakemakeApi(OutputSettings(quiet={Quietness.ALL})) as api:
        assert not api.workflow(ResourceSettings(cores=1), snakefile=ROOT / "Snakefile").lint()


def test_what_shows_the_papers_numbers_is_made_again_when_they_change(rules, jobs):
    for rule in rules:
        if rule.name in jobs:
            found = fingerprint(f"workflow/scripts/{jobs[rule.name]}.py")
            reads = "cdmae.report.paper.published" in found
            assert reads == (published.FILE.relative_to(ROOT).as_posix() in rule.input), rule.name


def test_the_profile_of_slurm_hides_the_guessing_of_an_account(caplog, monkeypatch):
    """Nobody names one where none is needed; what is guessed is said."""
    from snakemake.logging import logger
    from snakemake.profiles import ProfileConfigFileParser

    monkeypatch.setattr(logger, "filters", [])
    with open(ROOT / "workflow/profiles/slurm/profile.yaml") as file:
        ProfileConfigFileParser().parse(file)
    logger.warning("No SLURM account given, trying to guess.")
    logger.warning(
        "No account was given, not able to get a SLURM account via sacct: sacct: invalid option -- '1'"
    )
    logger.warning("Unable to guess SLURM account. Trying to proceed without.")
    logger.warning("Guessed SLURM account: physics")
    assert caplog.messages == ["Guessed SLURM account: physics"]


def test_only_profiles_say_what_is_tried_again_and_what_goes_on():
    """Retries in a rule multiply with those of a cluster; a job that fails must not stop those that
    need it not.
    """
    assert not re.search(r"\bretries\b", TEXT + (ROOT / "workflow/Snakefile").read_text())
    profiles = {
        path.parent.name: yaml.safe_load(path.read_text())
        for path in ROOT.glob("workflow/profiles/*/*.yaml")
    }
    assert profiles.keys() == {"default", "slurm"}
    for profile in profiles.values():
        assert profile["keep-going"] and profile["rerun-incomplete"] and profile["nolock"]
        assert profile["rerun-triggers"] == ["mtime", "params", "input"]
    assert "retries" not in profiles["default"]
    assert profiles["slurm"]["retries"] > 0 and profiles["slurm"]["slurm-requeue"]


def test_all_keys_of_the_profile_of_slurm_are_options():
    """Also the keys that are comments."""
    from snakemake.cli import get_argument_parser

    slurm = pytest.importorskip("snakemake_executor_plugin_slurm")
    own = {field.name for field in dataclasses.fields(slurm.ExecutorSettings)}
    parser = get_argument_parser()
    options = {name for action in parser._actions for name in action.option_strings}
    text = (ROOT / "workflow/profiles/slurm/profile.yaml").read_text()
    keys = re.findall(r"^(?:# )?([a-z][a-z-]+):(?: |$)", text, flags=re.MULTILINE)
    assert len(keys) > 10
    for key in keys:
        plugin = key.removeprefix("slurm-").replace("-", "_")
        assert f"--{key}" in options or plugin in own, key


def test_the_page_on_clusters_lists_the_rules_with_gpus(rules):
    page = (ROOT / "docs/clusters.md").read_text()
    (table,) = re.findall(r"\| rules \| GPUs .*\n((?:\|.*\n)+)", page)
    listed = set(re.findall(r"`(\w+)`", table))
    assert listed == {rule.name for rule in rules if "gpu" in rule.resources}
