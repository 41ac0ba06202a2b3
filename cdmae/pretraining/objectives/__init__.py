"""Pre-training objectives, one file each, named as in the config; a leading ``_`` marks helpers.

An objective's file defines one class, an `Objective` (`cdmae.pretraining.objectives._parts`) of
this `name`. ``(model, settings, seed)`` builds it around the encoder `model`; ``sides(settings,
unit)`` tell which sides show the passages, and how they mask them. ``forward(batch, generator)``
returns the loss of a micro-batch (to be added up over the global batch) and numbers to show, 0-d
tensors, added up likewise: ``encoder_loss`` and ``decoder_loss``, whose sum the loss is, and
``spread``, which tells a collapse. A loss that reads the whole global batch has ``prepare(batches,
generators, group) -> batches``, to which the loop hands a process's micro-batches before the first
of them. Weights other than the encoder's are trained along and discarded. The settings that only
some objectives know say so in `cdmae.config.schema.Encoder`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from cdmae.config.encoders import concepts

if TYPE_CHECKING:
    from cdmae.pretraining.objectives._parts import Objective


def objectives() -> list[str]:
    """Return the names of the objectives: the files of this folder."""
    return concepts("pretraining/objectives")


def objective(name: str) -> type[Objective]:
    """Return the class of an objective."""
    module = importlib.import_module(f"{__name__}.{name}")
    return next(part for part in vars(module).values() if getattr(part, "name", "") == name)
