"""The bottlenecked masked auto-encoder (section 3.1, equations 2 to 6; section 3.3, equation 9).

The encoder predicts its masked tokens; a weak decoder predicts its own, from the encoder's [CLS] and what it sees of
the passage. Both use one LM head, at masked positions only, and so does the last layer of each: nothing is computed
that no loss reads.

    B passages, S rows, M masked rows, D dimensions (see `cdmae.batches`)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Generator, Tensor, nn

from cdmae import masking, training, transformer
from cdmae.batches import Batch, View
from cdmae.errors import InputError
from cdmae.objectives._prediction import predict

if TYPE_CHECKING:
    from transformers import BertForMaskedLM

    from cdmae.config import Encoder
    from cdmae.masking import Side


def sides(settings: Encoder, unit: str) -> dict[str, Side]:
    """How the encoder's and the decoder's input are masked (equation 1)."""
    return dict(zip(("encoder", "decoder"), masking.sides(settings, unit), strict=True))


def create(model: BertForMaskedLM, settings: Encoder, seed: int) -> Mae:
    """The objective around a BERT with its LM head; the decoder's random weights depend on `seed`."""
    if model.config.model_type != "bert":
        raise InputError(
            f"objective mae needs a BERT with its LM head; the start is of the type {model.config.model_type}"
        )
    return Mae(
        model, settings.decoder_layers, settings.projection, training.generator(torch.device("cpu"), seed, "decoder")
    )


class Mae(nn.Module):
    """Encoder, bottleneck and decoder."""

    def __init__(self, model: BertForMaskedLM, decoder_layers: int, projection: bool, generator: Generator) -> None:
        """`generator` draws the decoder's weights: N(0, the model's initializer_range), biases 0."""
        from transformers.models.bert.modeling_bert import BertLayer

        super().__init__()
        width = model.config.hidden_size
        self.model = model
        with torch.device("meta"):  # or the layers would draw weights of their own
            self.decoder = nn.ModuleList(BertLayer(model.config) for _ in range(decoder_layers))
            self.projection = nn.Linear(width, width) if projection else nn.Identity()
        for part in (self.decoder, self.projection):
            part.to_empty(device="cpu").apply(lambda each: _draw(each, model.config.initializer_range, generator))

    def forward(self, batch: Batch, generator: Generator | None = None) -> tuple[Tensor, dict[str, Tensor]]:
        """Equation 9, L = L_enc + L_dec: the mean over the masked tokens of the global batch, per side.

        `spread` tells a collapse, see `_spread`.
        """
        encoder, decoder = batch["encoder"], batch["decoder"]
        h_c, encoded = self.encode(encoder, generator)
        decoded = self.decode(self.bottleneck(h_c), decoder, generator)
        loss, each = predict(
            self.model.cls.predictions,
            torch.cat([encoded, decoded]),
            torch.cat([encoder.labels, decoder.labels]),
            torch.cat([encoder.weights, decoder.weights]),
        )
        size = len(encoder.labels)
        return loss, {
            "encoder_loss": torch.dot(each[:size], encoder.weights),
            "decoder_loss": torch.dot(each[size:], decoder.weights),
            "spread": _spread(h_c.detach()) * batch.share,
        }

    def encode(self, view: View, generator: Generator | None = None) -> tuple[Tensor, Tensor]:
        """Equation 2: the [CLS] states h_c [B, D], and the states of the masked tokens [M, D]."""
        states = transformer.hidden_states(self.model.bert, view.inputs, last_rows=view.rows, generator=generator)
        h_c = states.index_select(0, view.rows.layout.starts[:-1])
        return h_c, states.index_select(0, view.masked)

    def bottleneck(self, h_c: Tensor) -> Tensor:
        """Equation 4: h_b = W h_c + b [B, D]."""
        return self.projection(h_c).to(h_c.dtype)

    def decode(self, h_b: Tensor, view: View, generator: Generator | None = None) -> Tensor:
        """Equation 5: the states of the decoder's masked tokens [M, D].

        h_b takes the place of [CLS] as it is, without a position; the other embeddings are the encoder's (decision 13).
        """
        inputs = transformer.embed(self.model.bert, view.inputs, generator=generator)
        inputs = inputs.index_copy(0, view.inputs.starts[:-1].long(), h_b)
        dropout = self.model.config.hidden_dropout_prob
        return transformer.run_layers(
            self.decoder, inputs, view.inputs.layout, last_rows=view.rows, dropout=dropout, generator=generator
        )


def _spread(h_c: Tensor) -> Tensor:
    """The standard deviation of [CLS] over the passages of a micro-batch, relative to its size; 1 for one passage."""
    if len(h_c) == 1:
        return h_c.new_ones(())
    return h_c.std(0, correction=0).norm() / h_c.norm(dim=1).mean()


def _draw(part: nn.Module, spread: float, generator: Generator) -> None:
    if isinstance(part, nn.Linear):
        nn.init.normal_(part.weight, std=spread, generator=generator)
        nn.init.zeros_(part.bias)
    elif isinstance(part, nn.LayerNorm):
        nn.init.ones_(part.weight)
        nn.init.zeros_(part.bias)
