"""LexMAE: a lexicon-weighted bottleneck (Shen et al. 2023, section 3.1).

The encoder predicts its masked tokens. Its LM head also computes the logits of all words of the
passage. Max-pooled, they are the passage's distribution over the vocabulary, a = softmax(max_i
z_i). The mean of the word embeddings under this distribution, h_b = a E, replaces [CLS] in the
decoder's input. From it the decoder predicts its own masked tokens. E gets no gradient from h_b,
so the only way to improve h_b is another distribution. An encoder that is trained like this suits
a sparse head, which uses the same logits as weights.

As in the published code (taoshen58/LexMAE, ``peach/models/modeling_lexmae.py``), [CLS] and [SEP] do
not count in the maximum, and a passage without words has the uniform distribution. The decoder
masks all that the encoder masks, and more (``--dec_mlm_overlap inclusive``). In that code the
decoder has an LM head with a transform of its own; here all networks share one head.

    B passages, S rows, M predicted rows, D dimensions, V word-pieces
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Generator, Tensor
from torch.nn import functional

from cdmae.models import architectures, transformer
from cdmae.pretraining.objectives._prediction import largest_logits
from cdmae.pretraining.objectives.mae import Mae

if TYPE_CHECKING:
    from cdmae.models.packed import Packed
    from cdmae.pretraining.batches import View


class LexMae(Mae):
    """Encoder, distribution over the vocabulary, and decoder."""

    name = "lexmae"
    nested = True

    def encode(self, view: View, generator: Generator | None = None) -> tuple[Tensor, Tensor]:
        """Return the bottlenecks h_b [B, D] and the states of the predicted tokens [M, D]."""
        inputs = view.inputs
        states = transformer.hidden_states(self.model.base_model, inputs, generator=generator)
        _, predicted = self.read_all(states, view)
        return self.embedded(self.distribution(states, inputs)).to(states.dtype), predicted

    def distribution(self, states: Tensor, inputs: Packed) -> Tensor:
        """Return softmax(max_i z_i) over the vocabulary, [B, V], from the states [S, D]."""
        starts = inputs.starts.long()
        special = torch.cat([starts[:-1], starts[1:] - 1])  # [CLS] and [SEP]
        head = architectures.head(self.model)
        largest = largest_logits(head, states, inputs, special).float()
        has_words = starts.diff()[:, None] > 2
        return torch.where(has_words, largest, 0.0).softmax(-1)

    def embedded(self, shares: Tensor) -> Tensor:
        """Return the mean of the word embeddings [B, D], weighted by the shares [B, V]."""
        encoder = self.model.base_model
        embeddings = encoder.get_input_embeddings().weight.detach()
        mean = shares @ embeddings
        project = getattr(encoder, "embeddings_project", None)
        return mean if project is None else functional.linear(mean, project.weight, project.bias)
