"""Name the folder of a training's state by its settings, its code and its inputs' content.

After a change of anything that its result depends on it starts afresh, and never goes on from a
state that the change has made stale. What is made again in the same bits keeps it. A rule calls it
as a script, with the standard library.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

LENGTH = 16  # hexadecimal digits of a name


def key_of(facts: Any) -> str:
    """Hash settings and fingerprints, which are plain values."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:LENGTH]


def folder_of(folder: str, key: str, inputs: Iterable[str]) -> Path:
    """Name the state folder of a training below `folder`, by its `key` (`key_of`) and the content
    of its inputs.

    Hidden files do not count: Snakemake leaves its time stamps in folders.
    """
    whole = hashlib.sha256(key.encode())
    for top in map(Path, inputs):
        for path in sorted(top.rglob("*")) if top.is_dir() else [top]:
            if path.is_file() and not path.name.startswith("."):
                whole.update(f"{path.relative_to(top)} ".encode())
                with path.open("rb") as file:
                    whole.update(hashlib.file_digest(file, "sha256").digest())
    return Path(folder, whole.hexdigest()[:LENGTH])


def adopt(name: str, folder: Path) -> str:
    """Give a training without a state of its own the newest older one; return a report, empty where
    nothing was done.

    Meant for an edit that leaves the mathematics alone, such as a renamed variable. Only the user
    can know that. Raises `InputError` where a training still holds the older state.
    """
    from cdmae.training import leases  # a script has only the standard library

    older = [
        other
        for other in folder.parent.glob("*")
        if other != folder and any(other.glob("step-*.pt"))
    ]
    if not older or any(folder.glob("step-*.pt")):
        return ""
    newest = max(
        older, key=lambda other: max(path.stat().st_mtime_ns for path in other.glob("step-*.pt"))
    )
    folder.mkdir(parents=True, exist_ok=True)
    with leases.held(newest, name), leases.held(folder, name):
        states = sorted(path.name for path in newest.glob("step-*.pt"))
        if not states:  # the training that held the lease has finished
            return ""
        for path in [*newest.glob("step-*.pt"), *newest.glob("*.tsv"), *newest.glob("snapshots/*")]:
            place = folder / path.relative_to(newest)
            if not place.is_dir():
                place.parent.mkdir(exist_ok=True)
                path.replace(place)
    step = int(states[-1].split(".")[0].removeprefix("step-"))
    return f"{name} goes on from step {step:,} of the state {newest.name}"


if __name__ == "__main__":
    print(folder_of(sys.argv[1], sys.argv[2], sys.argv[3:]))
