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
from cdmae.config.schema import Encoder
from cdmae.errors import InputError
from cdmae.models import architectures, transformer, weights
from cdmae.models.architectures import Head
from cdmae.models.packed import Packed
from cdmae.pretraining.batches import Batch, View
from cdmae.pretraining.objectives import _generator
from cdmae.pretraining.objectives._generator import Given
from cdmae.pretraining.objectives._parts import Objective, weights_of
from cdmae.pretraining.objectives._prediction import LOGITS_AT_ONCE, predict

if TYPE_CHECKING:
    from transformers import BertForMaskedLM, PretrainedConfig, PreTrainedModel


class SimLm(Objective):
    """Generator, encoder and decoder."""

    name = "simlm"

    def __init__(self, model: PreTrainedModel, settings: Encoder, seed: int, frozen: Given | None = None) -> None:
        """`frozen`: a generator that is not trained, the one of the settings unless it is given here.

        Without one, `seed` draws the weights of one that is trained along.
        """
        super().__init__(model, settings, seed)
        layers = model.config.num_hidden_layers
        if settings.decoder_layers > layers:
            raise InputError(
                f"decoder_layers is {settings.decoder_layers}; allowed: up to {layers}, the layers that simlm copies"
            )
        if settings.generator:
            frozen = _generator.load(settings.generator, model, settings.max_length)
        self.decoder = copy.deepcopy(architectures.layers(model.base_model)[-settings.decoder_layers :])
        self.generator = frozen or generator_of(model.config, seed)

    @staticmethod
    def sides(settings: Encoder, unit: str) -> dict[str, masking.Side]:
        """Return what the generator fills for the encoder and for the decoder, and the passages as they were."""
        sides = masking.sides(settings, unit)
        return {
            "encoder": replace(sides["encoder"], sampled=True),
            "decoder": replace(sides["decoder"], sampled=True, beyond="encoder"),
            "passage": masking.PLAIN,
        }

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
        h_c, encoded = self.encode(whole, generator, filled)
        own = self.model.base_model  # the decoder's layers are the encoder's: they read what these read
        states = transformer.embed(own, more, generator=generator).index_copy(0, more.starts[:-1].long(), h_c)
        states = transformer.run(own, self.decoder, states, more, last_rows=whole.rows, generator=generator)
        decoded = transformer.finish(own, states).index_select(0, whole.masked)
        loss, numbers = self.losses(batch, h_c, (encoded, whole), (decoded, whole))
        return loss + of_generator, {**numbers, "encoder_loss": numbers["encoder_loss"] + of_generator.detach()}

    def filler(self, generator: Generator | None) -> tuple[nn.Module, Head, Generator | None]:
        """Return the generator's encoder and head, and what draws its dropout; a frozen one has none."""
        if isinstance(self.generator, Given):
            return self.generator.encoder, self.generator.head, None
        return self.generator.bert, architectures.head(self.generator), generator


def fill(encoder: nn.Module, head: Head, view: View, generator: Generator | None = None) -> tuple[Packed, Tensor]:
    """Sample every masked token of the input by a generator's encoder and head; return their states [M, D], too."""
    states = transformer.hidden_states(encoder, view.inputs, last_rows=view.rows, generator=generator)
    states = states.index_select(0, view.masked)
    sampled = sample(head, states, view.draws, encoder.config.vocab_size)
    rows, ids = view.rows.index.index_select(0, view.masked), view.inputs.ids
    change = torch.where(view.weights > 0, sampled - ids.index_select(0, rows), 0)  # filler changes nothing
    return replace(view.inputs, ids=ids.index_add(0, rows, change)), states


@torch.no_grad()
def sample(head: Head, states: Tensor, draws: Tensor, size: int) -> Tensor:
    """Sample one of `size` word-pieces for each state [M, D] by the head, and by its number in [0, 1): int64 [M].

    It is the first whose cumulated probability is above the number, so that a token's replacement depends on nothing
    but the token's own place, whatever the micro-batch.
    """
    sampled = []
    at_once = max(1, LOGITS_AT_ONCE[states.device.type] // size)
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
