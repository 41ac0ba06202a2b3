"""Name the folder of a training's state by its settings, its code and the content of its inputs.

A training resumes only from a matching state: if anything that its result depends on has changed,
the folder's name is different, and the training starts again. If an input is made again
bit-identically, the state remains valid. The rules run this module as a script; it needs only the
standard library.
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
    """Hash settings and fingerprints, given as plain values."""
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:LENGTH]


def folder_of(folder: str, key: str, inputs: Iterable[str]) -> Path:
    """Return the path of a training's state folder, below `folder`.

    key: the hash from `key_of`. Hidden files among the inputs do not count, because Snakemake
    leaves time stamps in folders.
    """
    whole = hashlib.sha256(key.encode())
    for top in map(Path, inputs):
        paths = sorted(top.rglob("*")) if top.is_dir() else [top]
        for path in paths:
            if path.is_file() and not path.name.startswith("."):
                whole.update(f"{path.relative_to(top)} ".encode())
                with path.open("rb") as file:
                    whole.update(hashlib.file_digest(file, "sha256").digest())
    return Path(folder, whole.hexdigest()[:LENGTH])


def adopt(name: str, folder: Path) -> str:
    """Move a training's newest earlier state to `folder`, where the training now looks for it.

    Returns a report, or an empty text if there is nothing to move. Use it only after edits that do
    not change results, such as renaming a variable; only the user can know whether that is so.
    Raises `InputError` if a training is using the earlier state.
    """
    from cdmae.training import leases  # the script uses only the standard library

    times = {
        path.parent: path.stat().st_mtime_ns
        for path in sorted(
            folder.parent.glob("*/step-*.pt"), key=lambda path: path.stat().st_mtime_ns
        )
    }
    if not times or folder in times:
        return ""
    newest = max(times, key=times.__getitem__)
    folder.mkdir(parents=True, exist_ok=True)
    with leases.held(newest, name), leases.held(folder, name):
        states = sorted(path.name for path in newest.glob("step-*.pt"))
        if not states:  # the training that was using it has finished
            return ""
        for pattern in ("step-*.pt", "*.tsv", "snapshots/*"):
            for path in newest.glob(pattern):
                moved = folder / path.relative_to(newest)
                if not moved.is_dir():
                    moved.parent.mkdir(exist_ok=True)
                    path.replace(moved)
    step = int(states[-1].split(".")[0].removeprefix("step-"))
    return f"{name} resumes from step {step:,} of the state {newest.name}"


if __name__ == "__main__":
    print(folder_of(sys.argv[1], sys.argv[2], sys.argv[3:]))
