"""Encoders on disk: the result of a training, and snapshots of it at given steps.

Other config entries use snapshots as encoders; one training makes all of them. A snapshot of step s
is bit-identical to the result with `take_step` s. Snapshots are written next to the training's
state when the training passes their steps. A killed training that resumes after a step already has
the step's snapshot::

    state/.../snapshots/00001000/      during the training
    encoders/cdmae/snapshots/00001000/ with the finished encoder
    encoders/cdmae-1000/                the entry that uses it: the same files, hard-linked weights
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cdmae.config.objectives import AnyEncoder
from cdmae.errors import InputError
from cdmae.fields import asdict
from cdmae.files import complete, link, read_json, write_json
from cdmae.models import architectures, metadata, networks

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from cdmae.training.state import State

FOLDER = "snapshots"


@dataclass(frozen=True)
class Result:
    """What a pre-training writes: the encoder with its LM head, its tokenizer, and its origin."""

    model: PreTrainedModel
    settings: AnyEncoder
    tokenizer: Path
    about: dict[str, Any]

    def write(self, folder: Path, records: dict[str, Any]) -> None:
        """Write the encoder into a folder; records: of the training, for ``about.json``."""
        folder.mkdir(exist_ok=True)
        model = self.model
        positions = architectures.positions(model.config)
        networks.write(folder, model)
        metadata.write_tokenizer(folder, self.tokenizer, longest=positions)
        if self.settings.pretrained:
            metadata.write_modules(
                folder,
                width=model.config.hidden_size,
                pooling=self.settings.pooling,
                longest=self.settings.max_length,
            )
        write_json(folder / "about.json", self.about | records)


def snapshot(result: Result, saved: State, step: int, passages: int) -> None:
    """Write the encoder after `step` updates, next to the state of its training.

    passages: the number of passages that the training reads.
    """
    settings = asdict(replace(result.settings, take_step=step))
    origin = {"settings": settings, "steps": step, "passages": passages}
    with complete(_path(saved.folder, step)) as aside:
        result.write(aside, origin)
        saved.write_table("steps.tsv", aside)


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
