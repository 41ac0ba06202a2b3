"""Drop your decoder: bag-of-words prediction from [CLS] (Ma et al. 2024).

The encoder predicts its masked tokens; instead of a decoder, the LM head at [CLS] must predict the
set of the passage's word-pieces: L_bow = -1 / |set(x)| x sum over t in set(x) of log P(t | h_c).

    B passages, M predicted rows, D dimensions, V word-pieces (see `cdmae.pretraining.batches`)
"""

from __future__ import annotations

import torch
from torch import Generator, Tensor
from torch.nn import functional

from cdmae.models import architectures
from cdmae.pretraining.batches import Batch, View
from cdmae.pretraining.objectives._parts import Losses, Objective, added, passages_of


class BowDpr(Objective):
    """BoW-DPR: the encoder, and the bag-of-words loss at [CLS]."""

    name = "bowdpr"
    masked = ("encoder",)
    plain = ("passage",)

    def forward(self, batch: Batch, generator: Generator | None = None) -> Losses:
        """Return L = L_mlm + bag_weight x L_bow; the curve shows L_bow as the decoder's loss.

        L_bow is a mean over passages.
        """
        view = batch["encoder"]
        h_c, encoded = self.encode(view, generator)
        losses = self.losses(batch, h_c, (encoded, view))
        head = architectures.head(self.model)
        bags, _ = bags_of(batch["passage"], len(head.output.bias))
        bow = bag_loss(head(h_c), bags / bags.sum(1, keepdim=True).clamp_min(1))
        return added(losses, self.settings.bag_weight * batch.share * bow.mean())


def bags_of(view: View, size: int) -> tuple[Tensor, Tensor]:
    """Return each passage's bag of word-pieces, 0 or 1 [B, V], and its number of pieces [B, 1].

    view: the unmasked passages. Special tokens are in no bag. For a passage without word-pieces
    the number is 1.
    """
    passages = len(view.inputs)
    real = view.weights > 0
    # Filler gets a row of its own.
    of = torch.where(real, passages_of(view).index_select(0, view.masked), passages)
    bag = torch.zeros(passages + 1, size, device=of.device)
    bag[of, view.labels] = 1
    number = torch.zeros(passages + 1, device=of.device).index_add(0, of, real.float())
    return bag[:-1], number[:-1, None].clamp_min(1)


def bag_loss(logits: Tensor, weights: Tensor) -> Tensor:
    """Return the sum of -weight x log softmax(logits) over each bag, [B]; inputs are [B, V]."""
    return -(weights * functional.log_softmax(logits.float(), dim=1)).sum(1)
