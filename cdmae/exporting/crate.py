"""A finished run as an RO-Crate: its workflow, config, measures, report and model cards.

The crate follows the profiles Process Run Crate and Workflow Run Crate 0.5
(https://w3id.org/ro/wfrun/workflow/0.5). It describes one action: the instrument is the workflow,
the objects are the config files, and the results are the files of the run. Weights, vectors and
runs are omitted, because the workflow makes them again from the config.
"""

from __future__ import annotations

import importlib.util
import json
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from cdmae.errors import InputError
from cdmae.files import complete
from cdmae.formats import without_folders

PROFILES = {
    "https://w3id.org/ro/wfrun/process/0.5": ("Process Run Crate", "0.5"),
    "https://w3id.org/ro/wfrun/workflow/0.5": ("Workflow Run Crate", "0.5"),
    "https://w3id.org/workflowhub/workflow-ro-crate/1.0": ("Workflow RO-Crate", "1.0"),
}
PAPER = "https://arxiv.org/abs/2305.13197"
TYPES = {
    ".html": "text/html", ".json": "application/json", ".md": "text/markdown",
    ".svg": "image/svg+xml", ".tsv": "text/tab-separated-values", ".csv": "text/csv",
    ".yaml": "application/yaml", ".tex": "application/x-tex",
}  # fmt: skip


@dataclass(frozen=True)
class Finished:
    """A finished run.

    workflow: the main file of the workflow. configs: the config files in their order. config: the
    merged config; of local paths, only the last components are written. results: the results
    folder. licence: the SPDX identifier of the results' licence; empty if the config states no
    licence.
    """

    title: str
    workflow: Path
    configs: Iterable[Path]
    config: Mapping[str, Any]
    results: Path
    licence: str = ""


def check_package() -> None:
    """Raise `InputError` if rocrate is not installed."""
    if importlib.util.find_spec("rocrate") is None:
        raise InputError(
            "an RO-Crate needs the package rocrate, which is not installed; "
            ".venv/bin/pip install -r envs/requirements-crate.txt installs it"
        )


def write(run: Finished, output: Path) -> list[str]:
    """Write the crate's folder; return the paths of its files, relative to the folder."""
    from rocrate.model.contextentity import ContextEntity
    from rocrate.rocrate import ROCrate

    with complete(output) as aside, tempfile.TemporaryDirectory() as scratch:
        crate = ROCrate()
        crate.name = run.title
        crate.description = f"A run of cdmae, which implements the paper {PAPER}"
        crate.license = _licence(run.licence)
        workflow = crate.add_workflow(
            run.workflow, "workflow/Snakefile", main=True, lang="snakemake"
        )
        for rules in sorted((run.workflow.parent / "rules").glob("*.smk")):
            crate.add_file(rules, f"workflow/rules/{rules.name}")
        whole = Path(scratch) / "config.json"
        whole.write_text(json.dumps(without_folders(run.config), indent=2), encoding="utf-8")
        configs = [(path, f"config/{path.name}") for path in run.configs]
        files = {
            "object": [_added(crate, *each) for each in [*configs, (whole, "config.json")]],
            "result": [
                _added(crate, path, str(path.relative_to(run.results)))
                for path in _results(run.results)
            ],
        }
        action = crate.add(
            ContextEntity(
                crate,
                "#run",
                properties={
                    "@type": "CreateAction",
                    "name": f"Run of cdmae: {run.title}",
                    "actionStatus": {"@id": "http://schema.org/CompletedActionStatus"},
                    "endTime": _ended(run.results),
                },
            )
        )
        action["instrument"] = workflow
        for key, entities in files.items():
            action[key] = entities
        crate.root_dataset["mentions"] = [action]
        profiles = [
            crate.add(
                ContextEntity(
                    crate,
                    address,
                    properties={"@type": "CreativeWork", "name": name, "version": version},
                )
            )
            for address, (name, version) in PROFILES.items()
        ]
        crate.root_dataset["conformsTo"] = profiles
        crate.root_dataset["citation"] = {"@id": PAPER}
        crate.write(aside)
        return sorted(str(path.relative_to(aside)) for path in aside.rglob("*") if path.is_file())


def _added(crate: Any, path: Path, place: str) -> Any:
    """Add a file to the crate at the path `place`."""
    described = {"encodingFormat": TYPES.get(path.suffix, "text/plain")}
    return crate.add_file(path, place, properties=described)


def _results(results: Path) -> list[Path]:
    """List the report, the measures and the models' cards of a run.

    Raises `InputError` if the run is not finished.
    """
    page = results / "report/index.html"
    if not page.exists():
        raise InputError(f"{page} does not exist yet; ./run with the same config files makes it")
    found = [*results.glob("measures/*.tsv"), *results.glob("models/*/README.md")]
    pages = [path for path in results.glob("report/**/*") if path.is_file()]
    return sorted(path for path in [*found, *pages] if not path.name.startswith("."))


def _ended(results: Path) -> str:
    """Return the time at which the report was written, in ISO 8601."""
    time = (results / "report/index.html").stat().st_mtime
    return datetime.fromtimestamp(int(time), UTC).isoformat()


def _licence(name: str) -> str:
    """Return the licence in the form that the profile requires: a URL or a text."""
    return f"https://spdx.org/licenses/{name}" if name else "No licence is stated"
