"""The scores of a batch's queries with all of its passages, by a model that is not trained.

It is the student before its training, or a second teacher: a trained retriever with the same
tokenizer, whose margins in the whole batch the student learns (TAS-B, Hofstätter et al. 2021).

Shapes: `B` queries, `N` passages per query.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from cdmae.finetuning import late
from cdmae.finetuning.late import Texts
from cdmae.finetuning.objectives import Batch
from cdmae.models import checkpoint, heads, packed, sequences
from cdmae.models.heads import sparse
from cdmae.models.ragged import indices
from cdmae.training import setup

if TYPE_CHECKING:
    from cdmae.config.heads import Retriever
    from cdmae.finetuning.task import Data
    from cdmae.models.checkpoint import Model


@dataclass(frozen=True)
class SecondTeacher:
    """A trained retriever that scores whole batches for its student."""

    model: Model
    data: Data
    device: torch.device
    budget: int  # word-pieces that are encoded at a time
    precision: str

    @classmethod
    def read(
        cls, folder: Path, data: Data, stage: Retriever, device: torch.device
    ) -> SecondTeacher:
        """Load the retriever; raises `InputError` if it has another tokenizer than its student."""
        model = checkpoint.load(folder, "retriever")
        checkpoint.check_tokens(model, data.passages.word_starts, str(folder))
        return cls(model, data, device, stage.chunk * stage.passage_length, stage.precision)

    @torch.no_grad()
    def scores(self, asked: np.ndarray, drawn: np.ndarray) -> Tensor:
        """Return the score of each query with all passages: [B], [B, N] -> float32 [B, B x N]."""
        every = Batch.of(self.model, self.data, asked, drawn)
        with setup.autocast(self.precision, self.device):
            return all_scores(self.model, every, self.device, self.budget)


@torch.no_grad()
def all_scores(
    model: Model, batch: Batch, device: torch.device, budget: int, seed: int | None = None
) -> Tensor:
    """Return the score of each query of a batch with all passages, float32 [B, B x N].

    budget: word-pieces that are encoded at a time. seed: of dropout; None: without dropout.
    """
    network = model.network.to(device)
    head = heads.of(model.head)
    read = batch.sequences
    pieces = batch.pieces(network)
    starts = pieces.starts if pieces is not None else np.arange(len(read) + 1)
    vectors = torch.empty(int(starts[-1]), head.width(network), device=device)
    for chunk, rows in enumerate(sequences.chunks(read.lengths, budget)):
        dropout = (seed, "dropout", 0, chunk, 0)
        generator = None if seed is None else setup.generator(device, *dropout)
        texts = packed.pack(read.take(rows), device)
        made = head.vectors(network, texts, model, generator=generator)
        own = indices(starts[rows], starts[rows + 1] - starts[rows])
        vectors[torch.from_numpy(own).to(device)] = made.float()
    # Vectors may be computed in bfloat16, but scores in bfloat16 tie.
    with torch.autocast(device.type, enabled=False):
        if pieces is not None:
            every = Texts(vectors, pieces)
            queries = every.cut(slice(0, batch.queries))
            passages = every.cut(slice(batch.queries, len(read)))
            return late.scores(queries, passages, model.match)
        vectors = batch.whole(vectors)
        asked = vectors[: batch.queries]
        if model.head == "unified":
            words = sparse.width(network)
            asked[:, words:] *= model.dense_weight
        return asked @ vectors[batch.queries :].T
