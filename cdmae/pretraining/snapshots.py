"""Snapshots: a training's weights at given steps, which other config entries use as encoders.

One training makes all snapshots. A snapshot of step s is bit-identical to the result with
`take_step` s. Snapshots are written next to the training's state when the training passes their
steps. A killed training that resumes after a step already has the step's snapshot::

    state/.../snapshots/00001000/      during the training
    encoders/cdmae/snapshots/00001000/ with the finished encoder
    encoders/cdmae-1000/                the entry that uses it: the same files, hard-linked weights
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cdmae.config.checks import check_step
from cdmae.errors import InputError
from cdmae.files import complete, link, read_json, write_json

if TYPE_CHECKING:
    from cdmae.training.state import State

FOLDER = "snapshots"


def keeping(
    saved: State, steps: Sequence[int], last: int, write: Callable[[Path, int], None]
) -> Callable[[int], None]:
    """Return a function to be called after every update; it writes the snapshots of `steps`.

    last: the last step that is computed. write: fills a folder with a step's encoder.

    Raises `InputError` if the training does not reach one of the steps, or if it resumes
    after a step and that step's snapshot is missing.
    """
    for step in steps:
        check_step(step, last, "the last step")

    def keep(step: int) -> None:
        earlier = [before for before in steps if before < step] if step == saved.step else []
        lost = [before for before in earlier if not _path(saved.folder, before).is_dir()]
        if lost:
            raise InputError(
                f"the training resumes from step {step:,} but the snapshot of step {lost[0]:,} is "
                f"not in {saved.folder}; delete this folder and run again"
            )
        if step in steps:
            with complete(_path(saved.folder, step)) as aside:
                aside.mkdir()
                write(aside, step)
                saved.write_table("steps.tsv", aside)

    return lambda step: keep(step) if saved.writes else None


def _path(folder: Path, step: int) -> Path:
    return folder / FOLDER / f"{step:08d}"


def take(*, name: str, encoder: Path, step: int, output: Path) -> None:
    """Make the encoder `name` in the folder `output` from the snapshot of `encoder` at `step`."""
    snapshot = _path(encoder, step)
    if not snapshot.is_dir():
        raise InputError(f"{encoder} has no snapshot of step {step:,}; delete it and run again")
    about = read_json(snapshot / "about.json")
    with complete(output) as aside:
        shutil.copytree(
            snapshot, aside, copy_function=link, ignore=shutil.ignore_patterns("about.json")
        )
        write_json(aside / "about.json", about | {"name": name})
