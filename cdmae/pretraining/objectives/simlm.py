"""SimLM: replaced language modelling with a bottleneck (Wang et al. 2023, section 3.1).

A small generator replaces the masked tokens in the inputs of encoder and decoder by its samples.
Encoder and decoder predict the original of *every* token. The decoder masks all tokens that the
encoder masks, and more. It is initialised with the encoder's last layers, and reads the encoder's
[CLS] instead of its own.

The paper freezes ELECTRA's generator: ``generator: google/electra-base-generator``, for initial
checkpoints with BERT's vocabulary. Otherwise a generator is trained together with the encoder, on
the encoder's masks, as in ELECTRA (Clark et al. 2020). It has a third of the heads, but at least
one, with the hidden sizes in proportion, and works with any vocabulary.

    B passages, S rows, M predicted rows, D dimensions, V word-pieces (see `pretraining.batches`)
"""

from __future__ import annotations

import copy
import os
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Generator, Tensor

from cdmae.config.encoders import Pretraining
from cdmae.errors import InputError
from cdmae.masking.noise import uniforms
from cdmae.models import architectures, networks, transformer, weights
from cdmae.models.architectures import Head
from cdmae.models.packed import Packed
from cdmae.pretraining.batches import Batch, Masked, Texts, View
from cdmae.pretraining.objectives._parts import Losses, Objective, weights_of
from cdmae.pretraining.objectives._prediction import LOGITS_AT_ONCE, predict
from cdmae.pretraining.reader import Reader
from cdmae.tokens import tokenise

if TYPE_CHECKING:
    from transformers import BertForMaskedLM, PretrainedConfig, PreTrainedModel


SAMPLE = 3  # the salt of the numbers for sampling


class Sampled(Reader):
    """Gives every token of the masked sides a number for sampling its replacement."""

    def mask(self, name: str, texts: Texts, others: dict[str, Masked]) -> Masked:
        """Apply equation 1, and draw the numbers in [0, 1)."""
        masked = super().mask(name, texts, others)
        if name == "passage":
            return masked
        batch = self.batch_of(texts, self.sides[name])
        keys = self.keys(name, texts.epochs)
        numbers = uniforms(keys, batch.rows, batch.ids.shape[1], salt=SAMPLE)
        return replace(masked, draws=numbers[batch.real])


class SimLm(Objective):
    """Generator, encoder and decoder."""

    name = "simlm"
    plain = ("passage",)
    nested = True
    reader = Sampled

    def __init__(self, model: PreTrainedModel, settings: Pretraining, seed: int) -> None:
        """Use the settings' generator, frozen, or make one, whose weights are drawn with `seed`."""
        super().__init__(model, settings, seed)
        settings.check_layers(model.config.num_hidden_layers, "the initial checkpoint")
        self.decoder = copy.deepcopy(
            architectures.layers(model.base_model)[-settings.decoder_layers :]
        )
        self.learns = not settings.generator
        if self.learns:
            self.generator = generator_of(model.config, seed)
        else:
            self.generator = load(settings.generator, model).requires_grad_(False)

    def forward(self, batch: Batch, generator: Generator | None = None) -> Losses:
        """Return L = L_enc + L_dec + L_gen; the curve adds L_gen to the encoder's loss.

        A given generator has no loss.
        """
        masked = batch["encoder"]
        whole = batch["passage"]
        dropout = generator if self.learns else None
        filled, states = fill(self.generator, masked, dropout)
        of_generator = masked.weights.new_zeros(())
        if self.learns:
            of_generator, _ = predict(
                architectures.head(self.generator), states, masked.labels, masked.weights
            )
        with torch.no_grad():
            more, _ = fill(self.generator, batch["decoder"], dropout)
        h_c, encoded = self.encode(replace(whole, inputs=filled), generator)
        # the decoder's layers are copies of the encoder's, so it needs the same kind of input
        encoder = self.model.base_model
        states = transformer.embed(encoder, more, generator=generator)
        states = states.index_copy(0, more.starts[:-1].long(), h_c)
        states = transformer.run(
            encoder, self.decoder, states, more, last_rows=whole.rows, generator=generator
        )
        decoded = transformer.finish(encoder, states).index_select(0, whole.masked)
        loss, numbers = self.losses(batch, h_c, (encoded, whole), (decoded, whole))
        numbers["encoder_loss"] = numbers["encoder_loss"] + of_generator.detach()
        return loss + of_generator, numbers


def fill(
    model: PreTrainedModel, view: View, generator: Generator | None = None
) -> tuple[Packed, Tensor]:
    """Replace masked tokens by a generator's samples; also return its states at them, [M, D]."""
    states = transformer.hidden_states(
        model.base_model, view.inputs, last_rows=view.rows, generator=generator
    )
    states = states.index_select(0, view.masked)
    sampled = sample(architectures.head(model), states, view.draws, model.config.vocab_size)
    rows = view.rows.index.index_select(0, view.masked)
    ids = view.inputs.ids
    # Filler rows have no effect.
    change = torch.where(view.weights > 0, sampled - ids.index_select(0, rows), 0)
    return replace(view.inputs, ids=ids.index_add(0, rows, change)), states


@torch.no_grad()
def sample(head: Head, states: Tensor, draws: Tensor, size: int) -> Tensor:
    """Sample one of `size` word-pieces for each state [M, D] by a draw in [0, 1): int64 [M].

    The sample is the first word-piece with a cumulative probability above the draw. It does not
    depend on the other tokens of the micro-batch.
    """
    sampled = []
    at_once = max(1, LOGITS_AT_ONCE[states.device.type] // size)
    for part, numbers in zip(states.split(at_once), draws.split(at_once), strict=True):
        sums = head(part).float().softmax(-1).cumsum(-1)  # [m, V]
        index = torch.searchsorted(sums, (numbers * sums[:, -1])[:, None], right=True)[:, 0]
        sampled.append(index.clamp_max(sums.shape[1] - 1))
    return torch.cat(sampled)


def generator_of(config: PretrainedConfig, seed: int) -> BertForMaskedLM:
    """Make a language model with a third of the heads, in proportion, and the depth of `config`."""
    heads = max(1, config.num_attention_heads // 3)
    config = copy.deepcopy(architectures.bert_config(config))
    config.hidden_size = config.hidden_size // config.num_attention_heads * heads
    config.intermediate_size = config.intermediate_size * heads // config.num_attention_heads
    config.num_attention_heads = heads
    return weights.language_model(config, weights_of(seed, "generator"))


def load(name: str, start: PreTrainedModel) -> PreTrainedModel:
    """Load the generator, a folder or a name at the hub, for the initial model `start`.

    Raises `InputError` for a generator that cannot be read or has no language-model head. Its
    samples are the input of `start`, so its vocabulary must be the same.
    """
    remedy = (
        "; expected a masked language model with its head, such as google/electra-base-generator"
    )
    model, _ = networks.read(
        f"the generator {name}", os.path.expanduser(name), "encoder", remedy=remedy
    )
    own = tokenise.load_tokenizer(os.path.expanduser(name)).get_vocab()
    expected = tokenise.load_tokenizer(start.name_or_path).get_vocab()
    sizes = (model.config.vocab_size, start.config.vocab_size)
    if not expected.items() <= own.items() or sizes[0] != sizes[1]:
        raise InputError(
            f"the generator {name} has other word-pieces than the initial checkpoint "
            f"{start.name_or_path}; expected a generator with the same vocabulary"
        )
    return model
