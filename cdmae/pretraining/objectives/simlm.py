"""SimLM: replaced language modelling with a representation bottleneck (Wang et al. 2023, section 3.1).

A small generator fills the masked tokens of the encoder's and of the decoder's input with words of its own; encoder and
decoder predict the original of *every* token. The decoder masks all that the encoder masks and more, and begins as a
copy of the encoder's last layers, with the encoder's [CLS] in the place of its own.

The paper freezes ELECTRA's generator: ``generator: google/electra-base-generator``, for starts with BERT's vocabulary.
Without one it is trained along on the encoder's masks, as in ELECTRA (Clark et al. 2020), with a third of the heads and
of the widths as there, so that a vocabulary of one's own needs nothing given.

    B passages, S rows, M predicted rows, D dimensions, V word-pieces (see `cdmae.pretraining.batches`)
"""

from __future__ import annotations

import copy
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Generator, Tensor, nn

from cdmae import masking
from cdmae.errors import InputError
from cdmae.models import architectures, attention, weights
from cdmae.models.architectures import Head
from cdmae.models.packed import Packed
from cdmae.pretraining.batches import Batch, View
from cdmae.pretraining.objectives import _generator
from cdmae.pretraining.objectives._generator import Given
from cdmae.pretraining.objectives._parts import losses_of, read_states, weights_of
from cdmae.pretraining.objectives._prediction import LOGITS_AT_ONCE, predict

if TYPE_CHECKING:
    from transformers import BertForMaskedLM, PretrainedConfig, PreTrainedModel

    from cdmae.config.schema import Encoder
    from cdmae.masking import Side


def sides(settings: Encoder, unit: str) -> dict[str, Side]:
    """Return what the generator fills for the encoder and for the decoder, and the passages as they were."""
    encoder, decoder = masking.sides(settings, unit)
    return {
        "encoder": replace(encoder, sampled=True),
        "decoder": replace(decoder, sampled=True, beyond="encoder"),
        "passage": masking.PLAIN,
    }


def create(model: PreTrainedModel, settings: Encoder, seed: int) -> SimLm:
    """Build the objective around an encoder with its LM head; the generator's random weights depend on `seed`."""
    layers = model.config.num_hidden_layers
    if settings.decoder_layers > layers:
        raise InputError(
            f"decoder_layers is {settings.decoder_layers}; allowed: up to {layers}, the layers that simlm copies"
        )
    frozen = _generator.load(settings.generator, model, settings.max_length) if settings.generator else None
    return SimLm(model, settings.decoder_layers, seed, frozen)


class SimLm(nn.Module):
    """Generator, encoder and decoder."""

    def __init__(self, model: PreTrainedModel, decoder_layers: int, seed: int, frozen: Given | None = None) -> None:
        """`given`: a frozen generator; without it, `seed` draws the weights of one that is trained along."""
        super().__init__()
        self.model = model
        self.decoder = copy.deepcopy(architectures.layers(model.base_model)[-decoder_layers:])
        self.generator = frozen or generator_of(model.config, seed)

    def forward(self, batch: Batch, generator: Generator | None = None) -> tuple[Tensor, dict[str, Tensor]]:
        """L = L_enc + L_dec + L_gen; the generator's is shown with the encoder's, whose masks it learns from.

        A given generator has no loss.
        """
        masked, whole = batch["encoder"], batch["passage"]
        encoder, head, dropout = self.filler(generator)
        filled, states = fill(encoder, head, masked, dropout)
        of_generator = masked.weights.new_zeros(())
        if not isinstance(self.generator, Given):
            of_generator, _ = predict(head, states, masked.labels, masked.weights)
        with torch.no_grad():
            more, _ = fill(encoder, head, batch["decoder"], dropout)
        h_c, encoded = self.encode(filled, whole, generator)
        decoded = self.decode(h_c, more, whole, generator)
        loss, numbers = losses_of(self.model, batch, h_c, (encoded, whole), (decoded, whole))
        return loss + of_generator, {**numbers, "encoder_loss": numbers["encoder_loss"] + of_generator.detach()}

    def filler(self, generator: Generator | None) -> tuple[nn.Module, Head, Generator | None]:
        """Return the generator's encoder and head, and what draws its dropout; a frozen one has none."""
        if isinstance(self.generator, Given):
            return self.generator.encoder, self.generator.head, None
        return self.generator.bert, architectures.head(self.generator), generator

    def encode(self, inputs: Packed, view: View, generator: Generator | None = None) -> tuple[Tensor, Tensor]:
        """Return the vectors h_c [B, D] and the states of all tokens [M, D]; `view` says which rows those are."""
        states = attention.hidden_states(self.model.base_model, inputs, last_rows=view.rows, generator=generator)
        return read_states(states, view)

    def decode(self, h_c: Tensor, inputs: Packed, view: View, generator: Generator | None = None) -> Tensor:
        """Return the decoder's states of all tokens [M, D]."""
        encoder = self.model.base_model
        states = attention.embed(encoder, inputs, generator=generator)
        states = states.index_copy(0, inputs.starts[:-1].long(), h_c)
        states = attention.run(encoder, self.decoder, states, inputs, last_rows=view.rows, generator=generator)
        return attention.finish(encoder, states).index_select(0, view.masked)


def fill(encoder: nn.Module, head: Head, view: View, generator: Generator | None = None) -> tuple[Packed, Tensor]:
    """Sample every masked token of the input by a generator's encoder and head; return their states [M, D], too."""
    states = attention.hidden_states(encoder, view.inputs, last_rows=view.rows, generator=generator)
    states = states.index_select(0, view.masked)
    sampled = sample(head, states, view.draws)
    rows, ids = view.rows.index.index_select(0, view.masked), view.inputs.ids
    change = torch.where(view.weights > 0, sampled - ids.index_select(0, rows), 0)  # filler changes nothing
    return replace(view.inputs, ids=ids.index_add(0, rows, change)), states


@torch.no_grad()
def sample(head: Head, states: Tensor, draws: Tensor) -> Tensor:
    """Sample a word-piece for each state [M, D] from the head's probabilities, by its number in [0, 1): int64 [M].

    It is the first whose cumulated probability is above the number, so that a token's replacement depends on nothing
    but the token's own place, whatever the micro-batch.
    """
    sampled = []
    at_once = max(1, LOGITS_AT_ONCE[states.device.type] // len(head.bias))
    for part, numbers in zip(states.split(at_once), draws.split(at_once), strict=True):
        sums = head(part).float().softmax(-1).cumsum(-1)  # [m, V]
        place = torch.searchsorted(sums, (numbers * sums[:, -1])[:, None], right=True)[:, 0]
        sampled.append(place.clamp_max(sums.shape[1] - 1))
    return torch.cat(sampled)


def generator_of(config: PretrainedConfig, seed: int) -> BertForMaskedLM:
    """Make a language model with a third of the heads, as deep as `config` says, and in the same proportions."""
    heads = max(1, config.num_attention_heads // 3)
    config = copy.deepcopy(architectures.bert_config(config))
    config.hidden_size = config.hidden_size // config.num_attention_heads * heads
    config.intermediate_size = config.intermediate_size * heads // config.num_attention_heads
    config.num_attention_heads = heads
    return weights.language_model(config, weights_of(seed, "generator"))
