"""The workflow away from its checkout: any directory, a module, Snakemake alone, the catalogue."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
PIPELINE = ROOT / "workflow/Snakefile"
VALUES = {
    "standalone": True,
    "results": "results/small",
    "collections": {"mine": {"source": "pairs", "path": "data/mine.jsonl"}},
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
    rows = [{"query": f"query {number}", "positive": f"text {number}"} for number in range(8)]
    (tmp_path / "data").mkdir()
    (tmp_path / "data/mine.jsonl").write_text("\n".join(map(json.dumps, rows)))
    (tmp_path / "own.yaml").write_text("channels: [conda-forge]\n")
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(VALUES))
    return tmp_path


def snakemake(folder, *arguments, code=0, **environment):
    """Run Snakemake in a folder; return what it printed."""
    known = {key: value for key, value in os.environ.items() if not key.startswith("CDMAE_")}
    command = [sys.executable, "-m", "snakemake", "--cores", "1", *arguments]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    done = subprocess.run(command, cwd=folder, env=known | environment, text=True, **pipes)
    assert done.returncode == code, done.stdout
    return done.stdout


def test_a_module_has_its_config_and_prefix_and_leaves_other_rules_alone(folder):
    (folder / "config.yaml").write_text(yaml.safe_dump({"cdmae": VALUES}))
    (folder / "Snakefile").write_text(IMPORTER)
    snakemake(folder)
    about = json.loads((folder / "ours/results/small/collections/mine/about.json").read_text())
    assert about["passages"] == 8
    planned = snakemake(folder, "-n", "cdmae_all")
    assert "rule cdmae_report:" in planned and "input: ours/results/small/" in planned
    assert "rule cdmae_collection:" not in planned, "which is made"


CONDA = """case "$*" in
    --version) echo conda 26.1.0 ;;
    "info --json") echo '{"conda_prefix": "/nowhere", "platform": "linux-64"}' ;;
    "config --get channel_priority --json") echo '{"get": {"channel_priority": "strict"}}' ;;
esac"""


# packages that jobs need, and Snakemake with its executor for SLURM does not
OF_JOBS = (
    "faiss", "fastapi", "filelock", "huggingface_hub", "ir_datasets", "ir_measures", "matplotlib",
    "networkx", "numba", "pyarrow", "scipy", "sklearn", "torch", "transformers", "typer",
)  # fmt: skip


# packages that some configs need in the process of Snakemake, and such configs
NEEDED = {
    "ir_datasets": "collections: {nq: {source: ir_datasets, dataset: beir/nq}}",
    "ir_measures": "evaluation: {collections: {pydocs: [dev]}, relevant: {pydocs: {dev: 2}}}",
}


def test_snakemake_alone_plans_a_run(folder, programs):
    """Jobs have an environment of their own; the process of Snakemake has only Snakemake."""
    programs({"conda": CONDA})
    (folder / "sitecustomize.py").write_text(
        f"import sys\nsys.modules.update(dict.fromkeys({OF_JOBS}))\n"
    )
    run = ("-s", PIPELINE, "--sdm", "conda", "-n")
    assert "This was a dry-run" in snakemake(folder, *run, PYTHONPATH=str(folder))
    for package, config in NEEDED.items():
        (folder / "needs.yaml").write_text(config)
        files = ("--configfile", "needs.yaml")
        said = snakemake(folder, *run, *files, code=1, PYTHONPATH=str(folder))
        assert f"this config needs {package} also where Snakemake runs" in said
