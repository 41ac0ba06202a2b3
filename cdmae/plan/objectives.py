"""What a pre-training computes for a passage, forward and backward: one function per objective, named like its file.

Another objective is priced by another function here; a test asks for one of each. Operations, a multiplication and an
addition counting as two; what no loss reads (the last layer at other positions) is counted all the same.

n word-pieces of a passage; V vocabulary. Symbols: see `cdmae.plan.arithmetic`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from cdmae.plan.arithmetic import BACKWARD, Network

if TYPE_CHECKING:
    from cdmae.config.schema import Encoder
    from cdmae.plan.sizes import Size

TRAINED = 1 + BACKWARD  # of what is computed once, with its gradient


def passage(network: Network, encoder: Encoder, corpus: Size) -> float:
    """Operations for a passage of a collection, by the objective of the pre-training."""
    return PRICES[encoder.objective](network, encoder, corpus)


def mae(network: Network, encoder: Encoder, corpus: Size) -> float:
    """Price encoder, decoder, and the head at the masked tokens of both sides."""
    return _autoencoder(network, encoder, corpus.tokens(encoder.max_length))


def _autoencoder(network: Network, encoder: Encoder, n: float) -> float:
    head = network.head((encoder.encoder_ratio + encoder.decoder_ratio) * n)
    return TRAINED * (network.forward(n) + encoder.decoder_layers * network.layer(n) + head)


def cotmae(network: Network, encoder: Encoder, corpus: Size) -> float:
    """Price the same for two spans of a passage of up to twice the length."""
    return 2 * _autoencoder(network, encoder, _span(encoder, corpus))


def master(network: Network, encoder: Encoder, corpus: Size) -> float:
    """Price an encoder and two decoders of two spans, and the head at the masked tokens of all three."""
    n = _span(encoder, corpus)
    head = network.head((encoder.encoder_ratio + 2 * encoder.decoder_ratio) * n)
    return 2 * TRAINED * (network.forward(n) + 2 * encoder.decoder_layers * network.layer(n) + head)


def _span(encoder: Encoder, corpus: Size) -> float:
    return 1 + corpus.tokens(2 * encoder.max_length) / 2


def retromae(network: Network, encoder: Encoder, corpus: Size) -> float:
    """Price a decoder of one layer, and the head at the encoder's masked tokens and at all of the decoder's."""
    n = corpus.tokens(encoder.max_length)
    return TRAINED * (network.forward(n) + network.layer(n) + network.head((encoder.encoder_ratio + 1) * n))


def dupmae(network: Network, encoder: Encoder, corpus: Size) -> float:
    """RetroMAE, and the head at all of the encoder's tokens for the bag of words."""
    return retromae(network, encoder, corpus) + TRAINED * network.head(corpus.tokens(encoder.max_length))


def bowdpr(network: Network, encoder: Encoder, corpus: Size) -> float:
    """No decoder; the head at the masked tokens and at [CLS]."""
    n = corpus.tokens(encoder.max_length)
    return TRAINED * (network.forward(n) + network.head(encoder.encoder_ratio * n + 1))


def condenser(network: Network, encoder: Encoder, corpus: Size) -> float:
    """Price a head of some layers, and the language-model head at the same masked tokens twice."""
    return _condenser(network, encoder, corpus.tokens(encoder.max_length))


def _condenser(network: Network, encoder: Encoder, n: float) -> float:
    head = network.head(2 * encoder.encoder_ratio * n)
    return TRAINED * (network.forward(n) + encoder.decoder_layers * network.layer(n) + head)


def cocondenser(network: Network, encoder: Encoder, corpus: Size) -> float:
    """Price the same for two spans of a passage, whose vectors are computed once more for the gradient's sake."""
    n = _span(encoder, corpus)
    return 2 * (_condenser(network, encoder, n) + network.forward(n))


def simlm(network: Network, encoder: Encoder, corpus: Size) -> float:
    """Price the head at all tokens of both sides; a generator a third as wide, trained on one side and used on both.

    One that is given is not trained, and taken for as wide.
    """
    n = corpus.tokens(encoder.max_length)
    small = network.narrowed(max(1, network.heads // 3) / network.heads)
    trained = network.forward(n) + encoder.decoder_layers * network.layer(n) + network.head(2 * n)
    if not encoder.generator:
        trained += small.forward(n) + small.head(encoder.encoder_ratio * n)
    sampled = (1 + bool(encoder.generator)) * small.forward(n)
    sampled += small.head((encoder.encoder_ratio + encoder.decoder_ratio) * n)
    return TRAINED * trained + sampled


PRICES: dict[str, Callable[[Network, Encoder, Size], float]] = {
    price.__name__: price for price in (mae, retromae, dupmae, bowdpr, condenser, cocondenser, simlm, cotmae, master)
}
