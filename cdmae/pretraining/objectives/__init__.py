"""Pre-training objectives, one file each, named as in the config; a leading ``_`` marks helpers.

The file of an objective defines one subclass of `Objective` in
`cdmae.pretraining.objectives._parts`, with the file's name as its `name`:

- ``(model, settings, seed)`` builds it around the encoder `model`. Its other weights are discarded
  after the training.
- ``sides(settings, unit)`` returns the sides, views of the passages with their masks: `masked` and
  `plain`, unless the objective overrides it.
- ``reader`` reads and masks the texts of a step: `cdmae.pretraining.reader.Reader`, which reads
  whole passages and applies Algorithm 1, or a subclass of it in the same file.
- ``forward(batch, generator)`` returns the loss of a micro-batch and numbers for the curve, 0-d
  tensors: ``encoder_loss`` and ``decoder_loss``, which sum to the loss, and ``spread``, which
  reveals a collapse. The loop adds up losses and numbers over the global batch.
- ``prepare(batches, generators, group) -> batches``, for a loss over the whole global batch, gets
  all micro-batches of a process before the first forward pass.

`cdmae.config.objectives` has the settings of each objective.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cdmae.pretraining.objectives._parts import Objective


def objective(name: str) -> type[Objective]:
    """Return the class of an objective.

    Raises `LookupError` if its file has no class with this name.
    """
    module = importlib.import_module(f"{__name__}.{name}")
    for part in vars(module).values():
        if getattr(part, "name", "") == name:
            return part
    raise LookupError(f"{module.__file__} has no class with the name {name!r}")
