"""The bottlenecked masked auto-encoder (section 3.1, equations 2 to 6; section 3.3, equation 9).

The encoder predicts its masked tokens; a weak decoder predicts its own, from the encoder's [CLS] and what it sees of
the passage. Both use one LM head, at masked positions only, and so does the last layer of each: nothing is computed
that no loss reads.

    B passages, S rows, M masked rows, D dimensions (see `cdmae.pretraining.batches`)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Generator, Tensor, nn

from cdmae import masking
from cdmae.models import architectures, attention, weights
from cdmae.pretraining.batches import Batch, View
from cdmae.pretraining.objectives._parts import Inputs, encode, losses_of, weights_of

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from cdmae.config.schema import Encoder
    from cdmae.masking import Side


def sides(settings: Encoder, unit: str) -> dict[str, Side]:
    """Return how the encoder's and the decoder's input are masked (equation 1)."""
    return dict(zip(("encoder", "decoder"), masking.sides(settings, unit), strict=True))


def create(model: PreTrainedModel, settings: Encoder, seed: int) -> Mae:
    """Build the objective around an encoder with its LM head; the decoder's random weights depend on `seed`."""
    return Mae(model, settings.decoder_layers, settings.projection, weights_of(seed, "decoder"))


class Mae(nn.Module):
    """Encoder, bottleneck and decoder."""

    def __init__(self, model: PreTrainedModel, decoder_layers: int, projection: bool, generator: Generator) -> None:
        """Draw the decoder's weights by `generator`."""
        super().__init__()
        config, width = model.config, model.config.hidden_size
        self.model = model
        self.decoder = weights.layers(config, decoder_layers, generator)
        self.projection: nn.Module = nn.Identity()
        if projection:
            self.projection = weights.new(lambda: nn.Linear(width, width), config.initializer_range, generator)
        self.inputs = Inputs(model, generator)

    def forward(self, batch: Batch, generator: Generator | None = None) -> tuple[Tensor, dict[str, Tensor]]:
        """Equation 9, L = L_enc + L_dec: the mean over the masked tokens of the global batch, per side.

        `spread` tells a collapse.
        """
        encoder, decoder = batch["encoder"], batch["decoder"]
        h_c, encoded = self.encode(encoder, generator)
        decoded = self.decode(self.bottleneck(h_c), decoder, generator)
        return losses_of(self.model, batch, h_c, (encoded, encoder), (decoded, decoder))

    def encode(self, view: View, generator: Generator | None = None) -> tuple[Tensor, Tensor]:
        """Equation 2: the [CLS] states h_c [B, D], and the states of the masked tokens [M, D]."""
        return encode(self.model, view, generator)

    def bottleneck(self, h_c: Tensor) -> Tensor:
        """Equation 4: h_b = W h_c + b [B, D]."""
        return self.projection(h_c).to(h_c.dtype)

    def decode(self, h_b: Tensor, view: View, generator: Generator | None = None) -> Tensor:
        """Equation 5: the states of the decoder's masked tokens [M, D].

        h_b takes the place of [CLS] as it is, without a position; the other embeddings are the encoder's (decision 13).
        """
        return self.restore(self.decoder, h_b, view, generator)

    def restore(self, layers: nn.Module, h_b: Tensor, view: View, generator: Generator | None) -> Tensor:
        """Return the states [M, D] of a view's masked tokens after a decoder's `layers`; h_b [B, D] is beside them."""
        inputs = self.inputs(self.model, view.inputs, generator)
        inputs = inputs.index_copy(0, view.inputs.starts[:-1].long(), h_b)
        dropout = architectures.dropout(self.model.config)
        return attention.run_layers(
            layers, inputs, view.inputs.layout, last_rows=view.rows, dropout=dropout, generator=generator
        )
