"""The rules, the graph and the scripts tell the same story."""

import re
from pathlib import Path

import yaml

from cdmae.config.load import load
from cdmae.fingerprint import fingerprint
from cdmae.graph import Graph
from cdmae.jobs import RULES
from cdmae.report.paper import published
from cdmae.training.lineage import script

ROOT = Path(__file__).resolve().parent.parent
CHAPTERS = re.findall(r'^include: "workflow/rules/(\w+)\.smk"', (ROOT / "Snakefile").read_text(), flags=re.MULTILINE)
TEXT = "".join((ROOT / f"workflow/rules/{chapter}.smk").read_text() for chapter in CHAPTERS)
NAMES = re.findall(r"^rule (\w+):", TEXT, flags=re.MULTILINE)


def test_every_chapter_is_included():
    assert sorted(CHAPTERS) == sorted(path.stem for path in (ROOT / "workflow/rules").glob("*.smk"))


def test_every_rule_is_one_of_the_graph_and_runs_its_script():
    assert sorted(NAMES) == sorted(RULES)
    for rule, text in zip(NAMES, re.split(r"^rule \w+:", TEXT, flags=re.MULTILINE)[1:], strict=True):
        command = re.sub(r'"\s*"', "", text)
        launch = r"workflow/launch( --nodes {resources.nodes})? {resources.gpu}"
        assert re.search(rf"(python|{launch}) {script(rule)} ", command)
        assert f'*code("{rule}")' in text
        assert (ROOT / script(rule)).exists()


def test_what_shows_the_papers_numbers_is_made_again_when_they_change():
    for rule, text in zip(NAMES, re.split(r"^rule \w+:", TEXT, flags=re.MULTILINE)[1:], strict=True):
        reads = "cdmae.report.paper.published" in fingerprint(script(rule))
        assert reads == (published.FILE.relative_to(ROOT).as_posix() in text), rule


def test_the_profile_of_slurm_hides_the_guessing_of_an_account(caplog, monkeypatch):
    """Nobody names one where none is needed; what is guessed is said."""
    from snakemake.logging import logger
    from snakemake.profiles import ProfileConfigFileParser

    monkeypatch.setattr(logger, "filters", [])
    with open(ROOT / "workflow/profiles/slurm/profile.yaml") as file:
        ProfileConfigFileParser().parse(file)
    logger.warning("No SLURM account given, trying to guess.")
    logger.warning("No account was given, not able to get a SLURM account via sacct: sacct: invalid option -- '1'")
    logger.warning("Unable to guess SLURM account. Trying to proceed without.")
    logger.warning("Guessed SLURM account: physics")
    assert caplog.messages == ["Guessed SLURM account: physics"]


def test_only_profiles_say_what_is_tried_again_and_what_goes_on():
    """Retries in a rule multiply with those of a cluster; a job that fails must not stop those that need it not."""
    assert not re.search(r"\bretries\b", TEXT + (ROOT / "Snakefile").read_text())
    profiles = {path.parent.name: yaml.safe_load(path.read_text()) for path in ROOT.glob("workflow/profiles/*/*.yaml")}
    assert profiles.keys() == {"default", "slurm"}
    for profile in profiles.values():
        assert profile["keep-going"] and profile["rerun-incomplete"] and profile["nolock"]
        assert profile["rerun-triggers"] == ["mtime", "params", "input", "code"]
    assert "retries" not in profiles["default"]
    assert profiles["slurm"]["retries"] > 0 and profiles["slurm"]["slurm-requeue"]


def test_no_rule_forgets_what_its_result_depends_on(values):
    """Every param of a job stands in its rule, as a setting or as an entry with all its keys."""
    settings = set(re.findall(r'[^_]setting\("(\w+)", "(\w+)"\)', TEXT))
    entries = re.findall(r'\*entry\("(\w+)", \w+(?:, "(\w+)")?\)', TEXT)
    recorded = settings | {(rule, key or "settings") for rule, key in entries}
    needed = {(job.rule, key) for job in Graph(load(values)).jobs() for key in job.params}
    assert not needed - recorded
    with_plugins = {job.rule for job in Graph(load(values)).jobs() if job.plugins}
    assert with_plugins == set(re.findall(r'plugins=plugins\("(\w+)"\)', TEXT))


def test_the_page_on_clusters_tells_what_rules_with_gpus_ask_for():
    told = {
        rule: tuple(re.findall(r"\d+", row)[-3:])
        for row in re.findall(r"^\| (`.*\|.*\|.*\|.*\|)$", (ROOT / "docs/clusters.md").read_text(), flags=re.MULTILINE)
        for rule in re.findall(r"`(\w+)`", row)
        if rule in NAMES
    }
    asked = {}
    for rule, text in zip(NAMES, re.split(r"^rule \w+:", TEXT, flags=re.MULTILINE)[1:], strict=True):
        if found := re.search(r"gpu=gpus\((\d)\),\n(?: +nodes=1,\n)? +mem_mb=(\d+),\n +runtime=(\d+)", text):
            asked[rule] = found.groups()
    assert told == asked
    assert len(asked) == 11
