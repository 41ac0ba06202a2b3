"""Objectives of pre-training, one file each; its name is its name in the config. A ``_`` in front: no objective.

An objective's file defines ``create(model, settings, seed) -> nn.Module`` and ``sides(settings, unit)``: which sides
show the passages, and how they mask them. The module's ``forward(batch, generator)`` returns the loss of a micro-batch
(to be added up over the global batch) and numbers to show, 0-d tensors, added up likewise: ``encoder_loss`` and
``decoder_loss``, whose sum the loss is, and ``spread``, which tells a collapse. A loss that reads the whole global
batch has ``prepare(batches, generators, group) -> batches``, to which the loop hands a process's micro-batches before
the first of them. The module's encoder is `model`; its other weights are trained along and discarded. The settings that
only some objectives know say so in `cdmae.config.schema.Encoder`.
"""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType

from cdmae.errors import InputError


def objectives() -> list[str]:
    """Return the names of the objectives: the files of this folder."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__) if not module.name.startswith("_"))


def objective(name: str) -> ModuleType:
    """Return the module of an objective; raises `InputError` for an unknown name."""
    if name not in objectives():
        raise InputError(f"objective is {name!r}; allowed: {', '.join(objectives())}, none")
    return importlib.import_module(f"{__name__}.{name}")
