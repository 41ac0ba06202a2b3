"""Hugging Face's transformers as it behaves here: silent, and random by our seeds alone."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from cdmae.errors import InputError

if TYPE_CHECKING:
    from transformers import PreTrainedModel


def read(what: str, place: str, kinds: dict[str, type[PreTrainedModel]]) -> tuple[PreTrainedModel, dict[str, set[str]]]:
    """The model in a folder, or of a name at the hub, and which keys it has too few and too many.

    `kinds` are the classes by the type that its config.json tells, and `what` is the model in messages. Raises
    `InputError` for a missing or damaged file, another type, and weights of other sizes than config.json says.
    """
    from transformers import AutoConfig, PreTrainedConfig

    with _readable(what), quiet():  # a type that transformers does not know either is refused in our words, not in its
        described, _ = PreTrainedConfig.get_config_dict(place)
        kind = described.get("model_type") or AutoConfig.from_pretrained(place).model_type
    if kind not in kinds:
        raise InputError(f"{what} is of the type {kind!r}; allowed: {', '.join(kinds)}")
    with _readable(what), quiet():  # other sizes would only be told in a table, which is not shown
        model, keys = kinds[kind].from_pretrained(place, output_loading_info=True, ignore_mismatched_sizes=True)
    if keys["mismatched_keys"]:
        key, found, expected = min(keys["mismatched_keys"])
        raise InputError(
            f"{what} has {key} of the size {list(found)}, and its config.json says {list(expected)}; they do not "
            "belong together"
        )
    return model, keys


def check_layers(what: str, keys: dict[str, set[str]]) -> None:
    """Refuse a model with layers that its config.json does not know of: it would be shortened without a word."""
    surplus = sorted(key for key in keys["unexpected_keys"] if "encoder.layer." in key)
    if surplus:
        raise InputError(f"{what} has {some(surplus)}, which its config.json does not describe")


def some(keys: list[str]) -> str:
    """Some keys by name and the number of the others."""
    return ", ".join(keys[:3]) + (f" and {len(keys) - 3} more weights" if len(keys) > 3 else "")


@contextmanager
def _readable(what: str) -> Iterator[None]:
    """Turn what transformers raises for a missing, damaged or unfitting file into one sentence."""
    from huggingface_hub.errors import StrictDataclassError
    from safetensors import SafetensorError

    try:
        yield
    except (OSError, RuntimeError, ValueError, SafetensorError, StrictDataclassError) as error:
        raise InputError(f"{what} cannot be read: {' '.join(str(error).split())}") from None


def save(model: PreTrainedModel, folder: Path) -> None:
    """Write a model's config and weights (safetensors), under the names of today, into a folder."""
    with quiet(), writing():
        model.save_pretrained(folder, save_original_format=False)  # or old names that were read would be written again


@contextmanager
def writing() -> Iterator[None]:
    """Give what safetensors raises while it writes the class and the number of the system's error: a full disk."""
    from safetensors import SafetensorError

    try:
        yield
    except SafetensorError as error:
        number = re.search(r"os error (\d+)", str(error))
        if number is None:
            raise
        raise OSError(int(number[1]), os.strerror(int(number[1]))) from error


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """New weights come from torch's global generator: lend it a seeded one, give the old state back afterwards."""
    with torch.random.fork_rng(devices=[]):
        torch.random.default_generator.manual_seed(seed)
        yield


@contextmanager
def quiet() -> Iterator[None]:
    """No progress bar, no table of weights: what is missing is checked, and said, by those who load."""
    from transformers.utils import logging

    level, bar = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bar:
            logging.enable_progress_bar()
