"""A finished run as an RO-Crate, where rocrate is installed."""

import json

import pytest

from cdmae.errors import InputError
from cdmae.exporting import crate


@pytest.fixture
def run(tmp_path):
    """The files of a finished run that a crate reads."""
    files = {
        "workflow/Snakefile": "include: 'rules/a.smk'\n",
        "workflow/rules/a.smk": "",
        "config/own.yaml": "seed: 1\n",
        "results/report/index.html": "<html>",
        "results/measures/bm25.tsv": "collection\n",
        "results/models/one/README.md": "# one\n",
        "results/models/one/model.safetensors": "weights",
        "results/report/.snakemake_timestamp": "",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return crate.Finished(
        "Own",
        tmp_path / "workflow/Snakefile",
        [tmp_path / "config/own.yaml"],
        {"seed": 1},
        tmp_path / "results",
    )


def test_the_action_has_the_workflow_the_config_and_the_results(run, tmp_path):
    pytest.importorskip("rocrate")
    files = crate.write(run, tmp_path / "crate")
    metadata = json.loads((tmp_path / "crate/ro-crate-metadata.json").read_text())
    entities = {each["@id"]: each for each in metadata["@graph"]}
    action = entities["#run"]
    root = entities["./"]
    assert action["@type"] == "CreateAction" and root["mentions"] == [{"@id": "#run"}]
    assert action["instrument"] == root["mainEntity"] == {"@id": "workflow/Snakefile"}
    named = {key: {each["@id"] for each in action[key]} for key in ("object", "result")}
    assert named["object"] == {"config/own.yaml", "config.json"}
    assert named["result"] == {"report/index.html", "measures/bm25.tsv", "models/one/README.md"}
    assert named["result"] | named["object"] <= set(files)
    assert {each["@id"] for each in root["conformsTo"]} == set(crate.PROFILES)
    assert "models/one/model.safetensors" not in files


def test_an_unfinished_run_and_a_missing_package_are_refused(run, tmp_path, monkeypatch):
    (run.results / "report/index.html").unlink()
    with pytest.raises(InputError, match=r"index.html does not exist yet"):
        crate._results(run.results)
    monkeypatch.setattr(crate.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(InputError, match=r"requirements-crate.txt installs it"):
        crate.check_package()
