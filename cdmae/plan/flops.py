"""Count the networks' floating-point operations; a multiplication and an addition count as two.

Symbols: `d` width, `f` inner width, `V` vocabulary, `n` tokens of a text, special ones included.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from cdmae.config import pretrained

if TYPE_CHECKING:
    from cdmae.config.encoders import Pretraining
    from cdmae.config.starts import Start

BACKWARD = 2  # cost, in forward passes, of the gradients of the inputs and of the weights
TRAINED = 1 + BACKWARD  # a forward pass with its backward pass
PIECES_A_WORD = 1.35  # BERT's; punctuation counts as words
KEYS = {  # of config.json
    "layers": "num_hidden_layers", "width": "hidden_size", "inner": "intermediate_size",
    "vocabulary": "vocab_size",
}  # fmt: skip


@dataclass(frozen=True)
class Size:
    """The number of passages, their mean number of words, and the number of queries by split."""

    passages: int
    words: float
    queries: dict[str, int]

    def tokens(self, longest: int) -> float:
        """Return the mean word-pieces of a passage cut at L, including [CLS] and [SEP].

        It is m - exp(-2 L / m) (m + L) for gamma distributed lengths with shape 2 and mean m.
        """
        mean = self.words * PIECES_A_WORD
        room = longest - 2
        return 2 + mean - math.exp(-2 * room / mean) * (mean + room) if mean else 2.0


@dataclass(frozen=True)
class Network:
    """The dimensions of a Transformer encoder; the defaults are BERT base's."""

    layers: int = 12
    width: int = 768
    inner: int = 3072
    vocabulary: int = 30522

    @classmethod
    def of(cls, start: Start) -> Network:
        """Return the dimensions of an initial checkpoint's network."""
        if start.checkpoint:
            return cls.read(start.checkpoint)
        return cls(start.layers, start.hidden, start.feedforward, start.vocabulary)

    @classmethod
    def read(cls, model: str) -> Network:
        """Return the dimensions of a model in a folder; BERT base's if its files do not tell."""
        sizes = {name: pretrained.number(model, key) for name, key in KEYS.items()}
        return cls(**{name: size for name, size in sizes.items() if size})

    def parameters(self) -> int:
        """Return the weights of the layers' matrices and of the embeddings."""
        return self.layers * self.weights + self.vocabulary * self.width

    @property
    def weights(self) -> int:
        """Return the weights of a layer's matrices, 4 d^2 + 2 d f."""
        return 4 * self.width**2 + 2 * self.width * self.inner

    def layer(self, tokens: float) -> float:
        """Count a layer's operations on n tokens: 2 n per weight, and 4 n^2 d for attention."""
        return 2 * tokens * self.weights + 4 * tokens**2 * self.width

    def forward(self, tokens: float) -> float:
        """Count the operations of all layers on a text of n tokens."""
        return self.layers * self.layer(tokens)

    def head(self, tokens: float) -> float:
        """Count the language-model head's operations: transform d x d, vocabulary d x V."""
        return 2 * tokens * (self.width + self.vocabulary) * self.width


def passage(network: Network, encoder: Pretraining, corpus: Size) -> float:
    """Count the operations of pre-training on a passage of several spans, forward and backward.

    They are those of the encoder, its decoders and a head at the masked words. What only some
    objectives have, such as a generator, is left out.
    """
    n = corpus.tokens(encoder.spans * encoder.max_length) / encoder.spans
    decoders = encoder.held_layers if encoder.decoder_layers else 0
    layers = encoder.passes * network.layers + decoders
    masked = encoder.encoder_ratio + getattr(encoder, "decoder_ratio", 0.0)
    return encoder.spans * TRAINED * (layers * network.layer(n) + network.head(masked * n))
