"""MASTER: two decoders behind one vector, what each of them restores; its formula is in `benchmarks.naive`."""

import dataclasses

import numpy as np
import torch
from tiny_objectives import SETTINGS, bounds, first, learnt, network_of, reader
from torch import Tensor, nn

from benchmarks.naive import Naive, Side
from cdmae.pretraining.batches import Step


def losses(network: nn.Module, step: Step) -> tuple[Tensor, Tensor, Tensor]:
    """Of the encoder, of the decoder of the span itself, of the decoder of its neighbour."""
    naive = Naive("master", network)
    encoder, own, following = (Side.of(step, side) for side in ("encoder", "decoder", "neighbour"))
    states = naive.states(encoder)[-1]
    decoded = (naive.decoded(part, states[:, :1], side) for part, side in (("decoder", own), ("neighbour", following)))
    return tuple(map(naive.loss, (states, *decoded), (encoder, own, following)))


def test_master_shows_both_decoders_as_one_though_they_have_weights_of_their_own():
    network, step = network_of("master"), first("master")
    encoder, own, following = losses(network, step)
    numbers = learnt(network, step)[1]
    torch.testing.assert_close(numbers["encoder_loss"], encoder.detach())
    torch.testing.assert_close(numbers["decoder_loss"], (own + following).detach())
    pairs = zip(network.decoder.parameters(), network.neighbour.parameters(), strict=True)
    assert all(not torch.equal(one, other) for one, other in pairs)


def test_master_restores_a_span_from_its_own_vector_and_from_its_neighbour_s():
    """The first decoder reads the texts of the encoder, the second those beside them, each with masks of its own."""
    sides = next(reader("master", lengths=(16,) * 6).steps(0, 1)).sides
    texts = {side: [each.labels[a:b].tolist() for a, b in bounds(each)] for side, each in sides.items()}
    assert len(texts["encoder"]) == 12
    assert texts["decoder"] == texts["encoder"]
    assert texts["neighbour"] == [texts["encoder"][at ^ 1] for at in range(12)]
    chosen = {side: [each.chosen[a:b] for a, b in bounds(each)] for side, each in sides.items()}
    alike = [np.array_equal(chosen["decoder"][at], chosen["neighbour"][at ^ 1]) for at in range(12)]
    assert not all(alike)


def test_master_masks_rare_words_first_in_both_decoders():
    """Where one in nine words is a hundred times rarer: nearly all of those, and as many as ever of the encoder's."""
    settings = dataclasses.replace(SETTINGS, decoder_masking="inverse_frequency")
    source = reader("master", settings, lengths=(18,) * 30)
    rare = source.tokens.ids % 9 == 0
    source.values = {"inverse_frequency": np.where(rare, 0.0, -np.log(100)).astype(np.float16)}
    masked = dict.fromkeys(("encoder", "decoder", "neighbour"), 0.0)
    for step in source.steps(0, 5):
        for side, each in step.sides.items():
            candidates = each.labels > 4
            masked[side] += each.chosen[candidates & (each.labels % 9 == 0)].mean() / 5
    assert masked["encoder"] < 0.5
    assert min(masked["decoder"], masked["neighbour"]) > 0.9
