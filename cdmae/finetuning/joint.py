"""A retriever and its teacher, trained together (RocketQAv2, Ren et al. 2021, arXiv:2110.07367).

The reranker learns by the list-wise contrastive loss over each query's group, and both models by
the divergence of their distributions over the group: L = L_kl + alpha L_cont + L_listwise. The
divergence is that of equation 11, and its gradient reaches both models. RocketQAv2 has alpha 0.

Shapes: `B` queries, `N` passages per query.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from torch import Tensor

from cdmae.finetuning import reranker
from cdmae.finetuning.caching import Cached
from cdmae.models import packed, sequences
from cdmae.models.ragged import Ragged
from cdmae.training import setup

if TYPE_CHECKING:
    from cdmae.finetuning.task import FineTuning
    from cdmae.models.checkpoint import Model


def scores(teacher: Model, pairs: Ragged, student: FineTuning, step: int) -> Cached:
    """Return the teacher's scores of pairs, [B x N, 1], as an input of the student's loss.

    Every process computes a share of all lengths. Dropout is drawn for (seed, step, chunk,
    process).
    """
    group = student.group
    device = next(teacher.network.parameters()).device
    budget = student.stage.chunk * teacher.lengths["max_length"]
    cuts = sequences.chunks(pairs.lengths, budget, group.rank, group.size)

    def encode(chunk: int) -> Tensor:
        generator = setup.generator(device, student.seed, "teacher", step, chunk, group.rank)
        texts = packed.pack(pairs.take(cuts[chunk]), device)
        with setup.autocast(student.stage.precision, device):
            made = reranker.scores(teacher.network, texts, generator=generator)
        return made.unsqueeze(1)

    return Cached(encode, [packed.put(rows, device) for rows in cuts], len(pairs))
