"""Drop your decoder: bag-of-words prediction from [CLS] (Ma et al. 2024).

The encoder predicts its masked tokens; in place of a decoder, the LM head at [CLS] must name the set of the passage's
word-pieces: L_bow = -1 / |set(x)| x sum over t in set(x) of log P(t | h_c).

    B passages, M predicted rows, D dimensions, V word-pieces (see `cdmae.pretraining.batches`)
"""

from __future__ import annotations

from torch import Generator, Tensor

from cdmae import masking
from cdmae.config.schema import Encoder
from cdmae.models import architectures
from cdmae.pretraining.batches import Batch
from cdmae.pretraining.objectives import _bags
from cdmae.pretraining.objectives._parts import Objective, added


class BowDpr(Objective):
    """Encoder and bag of words."""

    name = "bowdpr"

    @staticmethod
    def sides(settings: Encoder, unit: str) -> dict[str, masking.Side]:
        """Return the encoder's masks, and the passages as they are for their bags."""
        return {"encoder": masking.sides(settings, unit)["encoder"], "passage": masking.PLAIN}

    def forward(self, batch: Batch, generator: Generator | None = None) -> tuple[Tensor, dict[str, Tensor]]:
        """L = L_mlm + bag_weight x L_bow, the latter a mean over passages; it is shown as the decoder's."""
        view = batch["encoder"]
        h_c, encoded = self.encode(view, generator)
        losses, head = self.losses(batch, h_c, (encoded, view)), architectures.head(self.model)
        bags, _ = _bags.bags(batch["passage"], len(head.bias))
        bow = _bags.loss(head(h_c), bags / bags.sum(1, keepdim=True).clamp_min(1))
        return added(losses, self.bag_weight * batch.share * bow.mean())
