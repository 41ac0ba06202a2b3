"""A retriever and its teacher, trained together (RocketQAv2, Ren et al. 2021, arXiv:2110.07367).

The reranker learns by the list-wise contrastive loss over each query's group, and both models by
the divergence of their distributions over the group: L = L_kl + alpha L_cont + L_listwise. The
divergence is that of equation 11, and its gradient reaches both models. RocketQAv2 has alpha 0.

Shapes: `B` queries, `N` passages per query.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from cdmae.finetuning import reranker
from cdmae.finetuning.caching import Cached
from cdmae.models import checkpoint, packed, sequences
from cdmae.models.ragged import Ragged
from cdmae.training import setup
from cdmae.training.ranks import Ranks

if TYPE_CHECKING:
    from cdmae.config.heads import Retriever
    from cdmae.finetuning.task import Data
    from cdmae.models.checkpoint import Model

COLUMNS = ("teacher_listwise", "teacher_accuracy")  # of the curve


@dataclass(frozen=True)
class JointTeacher:
    """A reranker that is trained together with a retriever."""

    model: Model
    data: Data

    @classmethod
    def read(cls, folder: Path, data: Data, device: torch.device) -> JointTeacher:
        """Load the reranker; raises `InputError` if it has another tokenizer than its student."""
        model = checkpoint.load(folder, "reranker")
        checkpoint.check_tokens(model, data.passages.word_starts, str(folder))
        model.network.to(device)
        return cls(model, data)

    def pairs(self, asked: np.ndarray, drawn: np.ndarray) -> Ragged:
        """Return the pairs of queries [B] and their groups [B, N], by group: B x N."""
        return reranker.pairs(self.data, self.model, asked, drawn)

    def scores(
        self,
        pairs: Ragged,
        stage: Retriever,
        group: Ranks,
        device: torch.device,
        *,
        seed: int,
        step: int,
    ) -> Cached:
        """Return the scores of the pairs, [B x N, 1], as an input of the batch's loss.

        Every process computes a share of all lengths. Dropout is drawn for (seed, step, chunk,
        process).
        """
        budget = stage.chunk * self.model.lengths["max_length"]
        cuts = sequences.chunks(pairs.lengths, budget, group.rank, group.size)

        def encode(chunk: int) -> Tensor:
            generator = setup.generator(device, seed, "teacher", step, chunk, group.rank)
            texts = packed.pack(pairs.take(cuts[chunk]), device)
            with setup.autocast(stage.precision, device):
                made = reranker.scores(self.model.network, texts, generator=generator)
            return made.unsqueeze(1)

        return Cached(encode, [packed.put(rows, device) for rows in cuts], len(pairs))
