"""A generator that is given: a masked language model in transformers format that samples words and is not trained.

ELECTRA's (its embeddings are wider than its layers, and its head goes back to their width) or another encoder's.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from torch import nn

from cdmae.errors import InputError
from cdmae.models import architectures, checkpoint
from cdmae.models.architectures import Head
from cdmae.tokens import tokenise

if TYPE_CHECKING:
    from transformers import PreTrainedModel


class Given(nn.Module):
    """An encoder and its head, frozen: what `simlm.fill` samples from."""

    def __init__(self, model: PreTrainedModel) -> None:
        """Take `model`, whose weights become constants."""
        super().__init__()
        self.model = model
        # Buffers that no state keeps move to a device with the rest, and nobody trains them.
        for part in self.modules():
            for name, weight in list(part.named_parameters(recurse=False)):
                delattr(part, name)
                part.register_buffer(name, weight.detach(), persistent=False)

    @property
    def encoder(self) -> nn.Module:
        """Return the transformer without its head."""
        return self.model.base_model

    @property
    def head(self) -> Head:
        """Return what makes logits of its states."""
        return architectures.head(self.model)


def load(name: str, start: PreTrainedModel, length: int) -> Given:
    """Load the generator in a folder or of a name at the hub, for a `start` and texts of `length` word-pieces.

    Raises `InputError` for one that cannot be read, has no language-model head, reads fewer word-pieces, or has others
    than the start: what it samples is the start's input.
    """
    remedy = "; allowed: a masked language model with its head, such as google/electra-base-generator"
    model, _ = checkpoint.read(f"the generator {name}", os.path.expanduser(name), "generator", remedy=remedy)
    positions = architectures.positions(model.config)
    if length > positions:
        raise InputError(f"max_length is {length}; allowed: up to {positions}, the positions of the generator {name}")
    _check_vocabulary(name, model, start)
    return Given(model)


def _check_vocabulary(name: str, model: PreTrainedModel, start: PreTrainedModel) -> None:
    """Refuse a vocabulary that is not the start's, word-piece by word-piece."""
    of_start = getattr(start, "name_or_path", "")
    sizes = model.config.vocab_size, start.config.vocab_size
    if sizes[0] != sizes[1] or not of_start:
        raise InputError(
            f"the generator {name} knows {sizes[0]:,} word-pieces, and the start, {of_start or 'with random weights'}, "
            f"{sizes[1]:,}; allowed: a generator with the vocabulary of the start's checkpoint"
        )
    here, there = (tokenise.load_tokenizer(os.path.expanduser(folder)).get_vocab() for folder in (of_start, name))
    for piece, number in sorted(here.items(), key=lambda item: item[1]):
        if there.get(piece) != number:
            raise InputError(
                f"the generator {name} does not have the word-piece {piece!r} as number {number}, which the start, "
                f"{of_start}, has; allowed: a generator with the vocabulary of the start's checkpoint"
            )
