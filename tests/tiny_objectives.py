"""A language model, a reader of nonsense and padded sides: what the tests of objectives share."""

from __future__ import annotations

import itertools

import numpy as np
import torch
from torch import Tensor, nn
from transformers import BertConfig, BertForMaskedLM
from transformers.models.bert.modeling_bert import BertLayer

from cdmae import bare
from cdmae.batches import Batch, Reader, Step
from cdmae.config import Encoder
from cdmae.files import Tokens
from cdmae.objectives import objective
from cdmae.vocabulary import Vocabulary

V, D, CLS, SEP, MASK = 40, 24, 2, 3, 4
CPU = torch.device("cpu")
LENGTHS = (5, 9, 1, 0, 7, 12, 3)
SETTINGS = Encoder(start="x", decoder_masking="uniform", encoder_masking="uniform", decoder_layers=2, batch=6)


def vocabulary() -> Vocabulary:
    special = np.arange(V) < 5
    return Vocabulary(V, 0, CLS, SEP, MASK, special, np.flatnonzero(~special), np.ones(V, bool))


def reader(name: str = "mae", settings: Encoder = SETTINGS, lengths: tuple[int, ...] = LENGTHS) -> Reader:
    """The steps of an objective, cut to 10 word-pieces and a [CLS] and a [SEP]."""
    starts = np.concatenate([[0], np.cumsum(lengths)])
    ids = np.random.default_rng(0).integers(5, V, starts[-1]).astype(np.uint16)
    ids[starts[1] + 2] = MASK  # a special token spelt out in a text: never to be predicted
    tokens = Tokens(ids, starts, starts[:-1], np.ones(V, bool))
    sides = objective(name).sides(settings, "word")
    return Reader(tokens, {}, vocabulary(), sides, batch=settings.batch, max_length=12, seed=3)


def language_model() -> BertForMaskedLM:
    torch.manual_seed(1)
    sizes = {"hidden_size": D, "num_hidden_layers": 3, "num_attention_heads": 3, "intermediate_size": 40}
    config = BertConfig(vocab_size=V, initializer_range=0.3, attn_implementation="eager", **sizes)
    model = BertForMaskedLM(config).eval()
    with torch.no_grad():
        model.cls.predictions.bias.normal_()  # or a missing bias would go unnoticed
    return model


def transformers_layers(layers: nn.ModuleList, config: BertConfig) -> list[BertLayer]:
    """Layers of ours as transformers' own modules, which compute: with the very same parameters."""
    found = [BertLayer(config) for _ in layers]
    for theirs, ours in zip(found, layers, strict=True):
        theirs.eval().load_state_dict(ours.state_dict(keep_vars=True), assign=True)
    return found


def transformers_model(ours: bare.MaskedLM) -> BertForMaskedLM:
    """A language model of ours as transformers' own, with the very same parameters."""
    found = BertForMaskedLM(BertConfig(**bare.values(ours.config), attn_implementation="eager")).eval()
    found.load_state_dict(ours.state_dict(keep_vars=True), assign=True)
    return found


def whole(step: Step) -> Batch:
    """A step as one micro-batch."""
    (batch,) = step.batches(10_000, CPU)
    return batch


class Padded:
    """A side of a step, padded: ids, labels, what is attended to and what is predicted, [B, n] each."""

    def __init__(self, step: Step, side: str) -> None:
        masked = step.sides[side]
        cuts = list(itertools.pairwise(masked.inputs.starts.tolist()))
        size = len(cuts), max(b - a for a, b in cuts)
        self.ids = torch.zeros(size, dtype=torch.long)
        self.attended, self.chosen = torch.zeros(size, dtype=torch.bool), torch.zeros(size, dtype=torch.bool)
        self.labels = torch.zeros(size, dtype=torch.long)
        for row, (a, b) in enumerate(cuts):
            self.ids[row, : b - a] = torch.from_numpy(masked.inputs.values[a:b])
            self.chosen[row, : b - a] = torch.from_numpy(masked.chosen[a:b])
            self.labels[row, : b - a] = torch.from_numpy(masked.labels[a:b])
            self.attended[row, : b - a] = True

    @property
    def hidden(self) -> Tensor:
        """What transformers adds to attention scores: [B, 1, 1, n]."""
        return torch.zeros(self.attended.shape).masked_fill(~self.attended, -torch.inf)[:, None, None, :]
