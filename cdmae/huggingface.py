"""Hugging Face's transformers as it behaves here: silent, and random by our seeds alone."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from transformers import PreTrainedModel


def save(model: PreTrainedModel, folder: Path) -> None:
    """Write a model's config and weights (safetensors) into a folder."""
    with quiet(), writing():
        model.save_pretrained(folder)


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
