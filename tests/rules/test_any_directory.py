"""The workflow away from its checkout: any directory, a module, Snakemake alone, the catalogue."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from snakemake_alone import make_environment

ROOT = Path(__file__).resolve().parents[2]
PIPELINE = ROOT / "workflow/Snakefile"
VALUES = {
    "standalone": True,
    "results": "results/small",
    "collections": {"mine": {"source": "beir", "path": "data/mine"}},
}
IMPORTER = f"""
configfile: "config.yaml"

rule mine:
    input: "ours/results/small/collections/mine/about.json"
    output: "mine.txt"
    conda: "own.yaml"
    shell: "env > {{output}}"

module cdmae:
    snakefile: "{PIPELINE}"
    config: config["cdmae"]
    prefix: "ours"

use rule * from cdmae as cdmae_*
"""


@pytest.fixture
def folder(tmp_path):
    """A working directory with a collection and a config."""
    data = tmp_path / "data/mine"
    (data / "qrels").mkdir(parents=True)
    rows = [{"_id": str(number), "text": f"some text {number}"} for number in range(8)]
    for name in ("corpus", "queries"):
        (data / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (data / "qrels/test.tsv").write_text("query-id\tcorpus-id\tscore\n1\t1\t1\n")
    (tmp_path / "own.yaml").write_text("channels: [conda-forge]\n")
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(VALUES))
    return tmp_path


def snakemake(folder, *arguments, environment=None, python=()):
    """Run Snakemake in a folder; return what it printed."""
    known = {key: value for key, value in os.environ.items() if not key.startswith("CDMAE_")}
    done = subprocess.run(
        [sys.executable, *python, "-m", "snakemake", "--cores", "1", *arguments],
        cwd=folder,
        env=known | (environment or {}),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def test_paths_begin_at_the_working_directory_and_hooks_may_be_off(folder):
    other = folder / "other"
    shutil.move(folder / "data", other / "data")
    run = ("-s", ROOT / "Snakefile", "--directory", other, "--configfile", "config.yaml")
    target = "results/small/collections/mine/about.json"
    snakemake(folder, target, *run, "--no-hooks")
    assert (other / target).exists()
    assert "Nothing to be done" in snakemake(folder, target, *run, "-n")
    assert sorted(path.name for path in folder.iterdir()) == ["config.yaml", "other", "own.yaml"]


def test_a_module_has_its_config_and_prefix_and_leaves_other_rules_alone(folder):
    (folder / "config.yaml").write_text(yaml.safe_dump({"cdmae": VALUES}))
    (folder / "Snakefile").write_text(IMPORTER)
    snakemake(folder)
    about = json.loads((folder / "ours/results/small/collections/mine/about.json").read_text())
    assert about["passages"] == 8
    planned = snakemake(folder, "-n", "cdmae_all")
    assert "rule cdmae_report:" in planned and "input: ours/results/small/" in planned
    assert "rule cdmae_collection:" not in planned, "which is made"


def test_every_rule_of_a_job_names_its_environment_of_conda(rules):
    environments = {rule.name: rule.conda_env for rule in rules if rule.script}
    assert set(environments.values()) == {"../../envs/gpu.yaml"}


CONDA = """case "$*" in
    --version) echo conda 26.1.0 ;;
    "info --json") echo '{"conda_prefix": "/nowhere", "platform": "linux-64"}' ;;
    "config --get channel_priority --json") echo '{"get": {"channel_priority": "strict"}}' ;;
esac"""


def test_snakemake_alone_plans_a_run(folder, programs):
    """Jobs have an environment of their own; the process of Snakemake has only Snakemake."""
    programs({"conda": CONDA})
    alone = make_environment(folder / "packages")
    run = ("-s", PIPELINE, "--sdm", "conda", "-n")
    printed = snakemake(folder, *run, environment=alone, python=("-S",))
    assert "This was a dry-run" in printed
