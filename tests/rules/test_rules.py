"""The rules, the graph and the scripts tell the same story."""

import dataclasses
import inspect
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from made_up import make_model
from planned import plan
from snakemake.api import SnakemakeApi
from snakemake.settings.types import OutputSettings, Quietness, ResourceSettings

from cdmae.plan import resources
from cdmae.report.paper import published
from workflow.fingerprint import fingerprint

ROOT = Path(__file__).resolve().parents[2]
CHAPTERS = re.findall(
    r'^ *include: "rules/(\w+)\.smk"',
    (ROOT / "workflow/Snakefile").read_text(),
    flags=re.MULTILINE,
)
TEXT = "".join((ROOT / f"workflow/rules/{chapter}.smk").read_text() for chapter in CHAPTERS)
TWINS = {
    "mine_bm25": "search_bm25", "mine": "search", "mine_external": "search_external", "mine_fusion": "fuse",
    "mine_feedback": "search_feedback", "mine_run": "read_run", "figure": "table", "untrained": "pretrain",
}  # fmt: skip


@pytest.fixture(scope="module")
def jobs(rules):
    """The rules that run a script: those and its path, by name."""
    return {
        rule.name: (rule, f"workflow/scripts/{TWINS.get(rule.name, rule.name)}.py")
        for rule in rules
        if rule.shellcmd
    }


def test_every_chapter_is_included():
    assert sorted(CHAPTERS) == sorted(path.stem for path in (ROOT / "workflow/rules").glob("*.smk"))


@pytest.fixture
def planned(values, tmp_path):
    """A job of every rule that runs a script."""
    return {job.record.rule: job for job in every_job(values, tmp_path).values()}


def test_every_rule_runs_the_script_of_its_name_and_depends_on_its_code(jobs, planned):
    launch = r"{params.launch}( --nodes {resources.nodes})?( --gpus {resources.gpu})?"
    for name, (rule, script) in jobs.items():
        assert re.search(rf"{launch} {script.removeprefix('workflow/')} ", rule.shellcmd), name
        assert script in planned[name].params["code"], name
    scripts = {path.relative_to(ROOT).as_posix() for path in ROOT.glob("workflow/scripts/*.py")}
    assert scripts == {script for _, script in jobs.values()}


def test_the_command_of_a_rule_is_the_one_that_runs(jobs):
    """Snakemake prints `shellcmd` but runs what it has compiled; the reason for a failure is found
    by the first.
    """
    for name, (rule, _) in jobs.items():
        assert rule.shellcmd in rule.run_func.__code__.co_consts, name


def test_a_log_that_somebody_made_a_link_is_not_written_through(tmp_path):
    """In a folder that a group shares; `tee` would empty the file behind it. Snakemake removes logs
    before a job.
    """
    mine, log = tmp_path / "mine.txt", tmp_path / "a.log"
    mine.write_text("precious")
    log.symlink_to(mine)
    rule = 'rule a:\n    output: "out"\n    log: "a.log"\n    shell: "echo said | tee -i {log} > {output}"\n'
    (tmp_path / "Snakefile").write_text(rule)
    command = [sys.executable, "-m", "snakemake", "--cores", "1", "--quiet"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    assert (mine.read_text(), log.read_text()) == ("precious", "said\n")


def test_every_rule_gives_its_script_the_options_that_it_takes(jobs, planned, monkeypatch):
    assert jobs.keys() <= planned.keys()
    for name, (_, script) in jobs.items():
        commands = []
        monkeypatch.setattr("cdmae.cli.run_command", commands.append)
        runpy.run_path(str(ROOT / script), run_name="__main__")
        parameters = inspect.signature(commands[0]).parameters
        needed = {
            key
            for key, parameter in parameters.items()
            if parameter.default is inspect.Parameter.empty
        }
        options = re.findall(
            r" --([a-z][a-z0-9-]*) ",
            planned[name].command.partition(script.removeprefix("workflow/"))[2].replace(" ", "  "),
        )
        assert needed <= {option.replace("-", "_") for option in options} <= parameters.keys(), name


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
    more = ("table_latency", "figure_masked_terms", "out/trec/bm25/docs.dev.run", *written)
    return plan(values, "all", *more)


def test_snakemakes_linter_has_nothing_to_say(monkeypatch):
    monkeypatch.chdir(ROOT)
    with SnakemakeApi(OutputSettings(quiet={Quietness.ALL})) as api:
        assert not api.workflow(ResourceSettings(cores=1), snakefile=ROOT / "Snakefile").lint()


def test_what_shows_the_papers_numbers_is_made_again_when_they_change(jobs):
    for name, (rule, script) in jobs.items():
        reads = "cdmae.report.paper.published" in fingerprint(script)
        assert reads == (published.FILE.relative_to(ROOT).as_posix() in rule.input), name


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
        assert profile["rerun-triggers"] == ["mtime", "params", "input", "code"]
    assert "retries" not in profiles["default"]
    assert profiles["slurm"]["retries"] > 0 and profiles["slurm"]["slurm-requeue"]


def test_every_rule_requests_memory_and_time_so_that_profiles_need_no_defaults(rules):
    for rule in rules:
        if rule.output:
            assert {"mem_mb", "runtime"} <= rule.resources.keys(), rule.name
    for path in ROOT.glob("workflow/profiles/*/*.yaml"):
        defaults = yaml.safe_load(path.read_text()).get("default-resources", {})
        assert not {"mem_mb", "runtime", "gpu"} & defaults.keys(), path


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


def test_the_page_on_clusters_lists_the_rules_with_gpus(jobs):
    page = (ROOT / "docs/clusters.md").read_text()
    (table,) = re.findall(r"\| rules \| GPUs .*\n((?:\|.*\n)+)", page)
    listed = set(re.findall(r"`(\w+)`", table))
    assert listed == set(resources.ON_SEVERAL + resources.ON_ONE)
    assert listed == {
        name for name, (rule, _) in jobs.items() if "{resources.gpu}" in rule.shellcmd
    } - {"untrained"}
