"""DupMAE: enhanced decoding, and a bag of words from the tokens' states (Xiao et al. 2023).

To RetroMAE's two losses, this objective adds a bag-of-words loss. The encoder's LM head computes
logits at every position except [CLS]. Max-pooled over the passage, they must predict its
word-pieces: L_bow = -1 / n x sum over t in set(x) of log softmax(max_i z_i)[t], where n is the
passage's length. The paper also searches with these pooled logits. Here, as for all objectives, the
vector is only the [CLS] state.

    B passages, S rows, M predicted rows, D dimensions, V word-pieces
"""

from __future__ import annotations

from torch import Generator, Tensor

from cdmae.models import architectures, transformer
from cdmae.pretraining.batches import Batch, View
from cdmae.pretraining.objectives._parts import Losses, added
from cdmae.pretraining.objectives._prediction import largest_logits
from cdmae.pretraining.objectives.bowdpr import bag_loss, bags_of
from cdmae.pretraining.objectives.retromae import RetroMae


class DupMae(RetroMae):
    """Encoder, enhanced decoder and bag of words."""

    name = "dupmae"
    plain = ("passage",)

    def forward(self, batch: Batch, generator: Generator | None = None) -> Losses:
        """Return L = L_enc + L_dec + bag_weight x L_bow; the decoder's curve includes L_bow."""
        encoder = batch["encoder"]
        decoder = batch["decoder"]
        states = transformer.hidden_states(
            self.model.base_model, encoder.inputs, generator=generator
        )
        h_c, encoded = self.read_all(states, encoder)
        decoded = self.decode(h_c, decoder, generator)
        losses = self.losses(batch, h_c, (encoded, encoder), (decoded, decoder))
        bags, number = bags_of(batch["passage"], self.model.config.vocab_size)
        bow = bag_loss(self.pooled(states, encoder), bags / number)
        return added(losses, self.settings.bag_weight * batch.share * bow.mean())

    def pooled(self, states: Tensor, view: View) -> Tensor:
        """Return the largest logit of each word-piece over a passage, except at [CLS]: [B, V]."""
        head = architectures.head(self.model)
        return largest_logits(head, states, view.inputs, view.inputs.starts[:-1].long())
