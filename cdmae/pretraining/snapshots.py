"""Snapshots: a training's weights at some of its steps, which other entries of the config use as encoders of their own.

One training serves them all: a snapshot of step s is bit for bit what the training would end in if its `take_step` were
s. They are written when the training passes their steps and lie beside its state, so that a killed training that goes
on behind a step has its snapshot already::

    state/.../snapshots/00001000/      while it runs
    encoders/cdmae/snapshots/00001000/ with the finished encoder
    encoders/cdmae-1000/               the entry that names it: hard links to these files
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cdmae.errors import InputError
from cdmae.files import complete, link, read_json, write_json

if TYPE_CHECKING:
    from cdmae.training.state import State

FOLDER = "snapshots"


class Snapshots:
    """The snapshots of a training that is under way."""

    def __init__(self, state: State, steps: Sequence[int], last: int, write: Callable[[Path, int], None]) -> None:
        """Take the `steps` to keep, the `last` that is computed, and what fills a folder with a step's encoder.

        Raises `InputError` for steps that the training does not reach.
        """
        beyond = [step for step in steps if not 0 < step <= last]
        if beyond:
            raise InputError(
                f"a snapshot of step {beyond[0]:,} is asked for; allowed: from 1 to {last:,}, the last step"
            )
        self._state, self._steps, self._write = state, steps, write

    def keep(self, step: int) -> None:
        """Write the snapshot of `step` if it is one to keep; called after every number of updates, the first resumed.

        Raises `InputError` where the training has gone on from a step behind one whose snapshot is not there.
        """
        if not self._state.writes:
            return
        if step == self._state.step:
            for earlier in self._steps:
                if earlier < step and not _place(self._state.folder, earlier).is_dir():
                    raise InputError(
                        f"the training goes on from step {step:,} and the snapshot of step {earlier:,} is not in "
                        f"{self._state.folder}; delete this folder and run again"
                    )
        if step in self._steps:
            with complete(_place(self._state.folder, step)) as aside:
                aside.mkdir()
                self._write(aside, step)
                self._state.write_table("steps.tsv", aside)

    def copy(self, folder: Path) -> None:
        """Put all of them into the finished encoder's folder."""
        for step in self._steps:
            shutil.copytree(_place(self._state.folder, step), _place(folder, step), copy_function=link)


def _place(folder: Path, step: int) -> Path:
    return folder / FOLDER / f"{step:08d}"


def take(*, name: str, encoder: Path, step: int, output: Path) -> None:
    """Make the encoder `name`, the folder `output`, of what the training of `encoder` kept at `step`."""
    place = _place(encoder, step)
    if not place.is_dir():
        raise InputError(f"{encoder} has no snapshot of step {step:,}; delete it and run again")
    about = read_json(place / "about.json")
    with complete(output) as aside:
        shutil.copytree(place, aside, copy_function=link, ignore=shutil.ignore_patterns("about.json"))
        write_json(aside / "about.json", about | {"name": name})
