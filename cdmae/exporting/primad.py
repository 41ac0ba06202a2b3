"""The origin of a TREC run, in the schema of ir_metadata 0.1 (https://www.ir-metadata.org).

The schema has the components of PRIMAD: platform, research goal, implementation, method, actor and
data. The platform is the machine of the job that writes the run. The actor is not filled in,
because only the run's author knows their name and affiliation.
"""

from __future__ import annotations

import os
import platform
from importlib.metadata import version
from pathlib import Path
from typing import Any

import yaml

from cdmae.files import write_text
from cdmae.formats import without_folders

PACKAGES = ("torch", "transformers", "faiss-cpu", "ir-measures", "numpy", "scipy")
TOOLKIT = "pyserini"
PAPER = "https://arxiv.org/abs/2305.13197"


def write(path: Path, facts: dict[str, Any]) -> None:
    """Write the metadata of a run.

    facts: the mapping from `trec` in `workflow/facts.py`: tag, methods (the settings of each system
    that the system reads, then its own, each with `name` and `parts`), collection, split, trained,
    measures, baselines.
    """
    facts = without_folders(facts)
    metadata = {
        "schema-version": 0.1,
        "run-version": 1.0,
        "tag": facts["tag"],
        "platform": _platform(),
        "research goal": {
            "publication": {"arxiv": PAPER},
            "evaluation": {
                "reported measures": facts["measures"],
                "baseline": facts["baselines"],
                "significance test": [{"name": "paired t-test", "correction method": "Holm"}],
            },
        },
        "implementation": {
            "executable": {"cmd": f"./run {facts['target']}"},
            "source": {"lang": ["python"]},
        },
        "method": {
            "automatic": True,
            "score ties": "order of the passages in the collection",
            "retrieval": [_method(each) for each in facts["methods"]],
        },
        "data": {
            "test collection": {**facts["collection"], "topics": facts["split"]},
            "training data": facts["trained"],
        },
    }
    text = yaml.safe_dump(metadata, sort_keys=False, allow_unicode=True)
    write_text(path, text)


def _method(settings: dict[str, Any]) -> dict[str, Any]:
    """Describe a component of the ranking: its name, its kind, its inputs and its settings."""
    inputs = {}
    parts = settings["parts"]
    if parts:
        inputs = {"reranks": parts[0]} if len(parts) == 1 else {"interpolates": parts}
    kept = {
        key: value
        for key, value in settings.items()
        if key not in ("name", "kind", "parts") and value not in ("", None, [])
    }
    return {"name": settings["name"], "method": settings["kind"], **inputs, "params": kept}


def _platform() -> dict[str, Any]:
    """Describe this machine and the packages that compute runs."""
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    installed = []
    for name in PACKAGES:
        found = _version(name)
        if found:
            installed.append(f"{name}=={found}")
    return {
        "hardware": {
            "cpu": {"architecture": platform.machine(), "number of cores": os.cpu_count()},
            "ram": f"{round(pages / 1e9)} GB",
        },
        "operating system": {"kernel": f"{platform.system()} {platform.release()}"},
        "software": {
            "libraries": {"python": [f"python=={platform.python_version()}", *installed]},
            "retrieval toolkit": [f"{TOOLKIT}=={_version(TOOLKIT)}"],
        },
    }


def _version(name: str) -> str:
    """Look up a package's version; empty if it is not installed, such as faiss-cpu next to CUDA."""
    try:
        return version(name)
    except ModuleNotFoundError:
        return ""
