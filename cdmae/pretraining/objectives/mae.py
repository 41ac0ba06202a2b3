"""The bottlenecked masked auto-encoder (section 3.1, equations 2 to 6; section 3.3, equation 9).

The encoder predicts its masked tokens. A weak decoder predicts its own masked tokens from the
encoder's [CLS] and the unmasked rest of the passage. Both use the same LM head. The LM head and the
last layer of each are computed at masked positions only.

    B passages, S rows, M masked rows, D dimensions (see `cdmae.pretraining.batches`)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Generator, Tensor, nn

from cdmae.config.encoders import Pretraining
from cdmae.models import transformer, weights
from cdmae.pretraining.batches import Batch, View
from cdmae.pretraining.objectives._parts import Losses, Objective, weights_of

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from cdmae.models.packed import Packed


class Mae(Objective):
    """Encoder, bottleneck and decoder.

    Encoders with rotary attention have no position vectors. Their decoders have BERT's layers and
    need new position vectors, `positions`. These are trained with the rest, and
    initially have the scale of the word vectors to which they are added.
    """

    name = "mae"
    probed = True

    def __init__(self, model: PreTrainedModel, settings: Pretraining, seed: int) -> None:
        """Draw the weights of the decoder, and of the projection if there is one, by `seed`."""
        super().__init__(model, settings, seed)
        config = model.config
        width = config.hidden_size
        generator = weights_of(seed, "decoder")
        self.decoder = weights.layers(config, settings.decoder_layers, generator)
        self.projection: nn.Module = nn.Identity()
        if settings.projection:
            projection = nn.Linear(width, width)
            self.projection = weights.draw(projection, config.initializer_range, generator)
        self.positions: nn.Embedding | None = None
        embeddings = model.base_model.embeddings
        if not hasattr(embeddings, "position_embeddings"):
            size = config.max_position_embeddings
            norm = embeddings.norm if hasattr(embeddings, "norm") else embeddings.LayerNorm
            spread = norm.weight.mean().item()
            self.positions = weights.draw(nn.Embedding(size, width), spread, generator)

    def forward(self, batch: Batch, generator: Generator | None = None) -> Losses:
        """Return equation 9, L = L_enc + L_dec, means over the global batch's predictions."""
        encoder = batch["encoder"]
        decoder = batch["decoder"]
        h_c, encoded = self.encode(encoder, generator)
        decoded = self.decode(self.bottleneck(h_c), decoder, generator)
        return self.losses(batch, h_c, (encoded, encoder), (decoded, decoder))

    def bottleneck(self, h_c: Tensor) -> Tensor:
        """Compute equation 4: h_b = W h_c + b [B, D]."""
        return self.projection(h_c).to(h_c.dtype)

    def context(self, h_b: Tensor, inputs: Packed, generator: Generator | None) -> Tensor:
        """Return a decoder's input [S, D]: embeddings of words and positions, with h_b as [CLS]."""
        states = transformer.embed(self.model.base_model, inputs, generator=generator)
        if self.positions is not None:
            states = states + self.positions(inputs.positions)
        return states.index_copy(0, inputs.starts[:-1].long(), h_b)

    def decode(
        self,
        h_b: Tensor,
        view: View,
        generator: Generator | None = None,
        layers: nn.Module | None = None,
    ) -> Tensor:
        """Compute equation 5: the states of the decoder's masked tokens [M, D].

        h_b replaces [CLS] without a position embedding; the other embeddings are the encoder's
        (decision 13). layers: of another decoder.
        """
        encoder = self.model.base_model
        inputs = view.inputs
        states = self.context(h_b, inputs, generator)
        layers = self.decoder if layers is None else layers
        return transformer.run(
            encoder, layers, states, inputs, last_rows=view.rows, generator=generator
        )
