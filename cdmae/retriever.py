"""Training a retriever (section 3.4): one encoder for both sides, [CLS], dot product; all three stages.

The global batch is what the settings say, B queries with N passages each. It is encoded in chunks sorted by length,
twice: first without gradients, to get all vectors and the loss's gradient with respect to each of them; then again,
chunk by chunk, to carry those gradients on to the weights (gradient caching, Gao et al. 2021). Memory follows the
chunk; loss and gradient are those of the whole batch. The last chunk, the longest, keeps its graph and is not encoded
again: a batch that fits one chunk costs no more than without caching.

Shapes: `B` queries, `N` passages per query, `D` dimensions, `n` = B + B x N sequences.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from cdmae import files, finetuning, groups, losses, models, sequences, training, transformer
from cdmae.errors import InputError
from cdmae.finetuning import Meter
from cdmae.progress import Progress
from cdmae.ranks import Ranks
from cdmae.sequences import Sequences

if TYPE_CHECKING:
    from cdmae.config import Stage
    from cdmae.files import Run, Tokens
    from cdmae.groups import Examples
    from cdmae.models import Model


def train(
    *,
    name: str,
    stage: Stage,
    encoder: Path,
    collection: Path,
    tokens: Path,
    negatives: Path,
    teacher: Path | None,
    seed: int,
    threads: int,
    state: Path,
    output: Path,
) -> None:
    """Train the retriever `name` from a pre-trained encoder and write it to `output`.

    negatives: a run over the training queries; teacher: a reranker's run over the same candidates, or None. The state
    folder lets a killed training go on to the same bits (on the CPU).
    """
    device = training.set_up(threads)
    data = read(stage, encoder, collection, tokens, negatives, teacher, seed, threads)
    model = models.start_retriever(
        encoder, query_length=stage.query_length, passage_length=stage.passage_length, precision=stage.precision
    )
    models.check_tokens(model, data.passages.word_starts, str(tokens))
    network = model.network.to(device)
    parameters = list(network.parameters())
    adam = training.optimiser(network, stage.learning_rate, stage.weight_decay)
    steps, warmup = finetuning.schedule(stage, len(data.examples), name)
    meter = Meter(steps)
    columns = ["step", "loss", "contrastive", *(["kl"] if teacher else []), "accuracy", "spread", "learning_rate"]
    with finetuning.shared(state, name, stage, device) as (held, group), training.Stop() as stop:
        begun = time.monotonic() - finetuning.restore(held, group, network, adam, meter, name)
        curve = held.curve(columns)
        with Progress(steps, label=f"train {name}", start=held.step) as progress:
            for step, epoch, rows in data.examples.batches(stage.queries, steps, held.step):
                rate = training.learning_rate(step, steps, warmup, stage.learning_rate)
                training.set_learning_rate(adam, rate)
                numbers = learn(network, data.batch(rows, epoch, model), stage, group, seed=seed, step=step)
                group.add_up([each.grad for each in parameters])
                training.clip(parameters, stage.max_grad_norm)
                adam.step()
                adam.zero_grad()
                meter.add(numbers)
                progress.advance(loss=numbers["loss"])
                done = step + 1
                shown = done % meter.interval == 0 or done == steps
                saved = done < steps and finetuning.pause(held, group, stop, shown)
                if shown or saved:
                    finetuning.check(numbers, done, step > warmup, stage.learning_rate)
                if shown:
                    curve.add(step=done, learning_rate=rate, **meter.means())
                if saved:
                    finetuning.save(held, done, network, adam, meter, time.monotonic() - begun)
                    finetuning.end_if_asked(group, stop, name, done)
        if group.first:
            seconds = round(time.monotonic() - begun, 1)
            about = {"name": name, "seed": seed, "queries": len(data.examples), "steps": steps, "seconds": seconds}
            finetuning.write(output, encoder, model, stage, held, about)


# --- a step's data ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Batch:
    """A step: B queries, then their B x N passages, as sequences.

    excluded: bool [B, B x N], see `groups.Examples.excluded`; None without in-batch negatives.
    teacher: the reranker's scores of the groups, float32 [B, N], or None.
    """

    sequences: Sequences
    queries: int
    excluded: np.ndarray | None
    teacher: np.ndarray | None


@dataclass(frozen=True)
class Data:
    """Everything that batches are drawn from."""

    examples: Examples
    queries: Tokens
    passages: Tokens
    in_batch: bool
    teacher: Run | None
    teacher_name: str

    def batch(self, rows: np.ndarray, epoch: int, model: Model) -> Batch:
        """The batch of some examples in an epoch."""
        drawn = self.examples.draw(rows, epoch)  # [B, N]
        asked, vocabulary = self.examples.queries[rows], model.vocabulary
        queries = sequences.single(self.queries, asked, model.lengths["query_length"], vocabulary)
        passages = sequences.single(self.passages, drawn.ravel(), model.lengths["passage_length"], vocabulary)
        return Batch(
            sequences.joined(queries, passages),
            len(rows),
            self.examples.excluded(rows, drawn) if self.in_batch else None,
            groups.scores_of(self.teacher, asked, drawn, self.teacher_name) if self.teacher else None,
        )


def read(
    stage: Stage,
    encoder: Path,
    collection: Path,
    tokens: Path,
    negatives: Path,
    teacher: Path | None,
    seed: int,
    threads: int,
) -> Data:
    """Read what a stage trains on; raises `InputError` where the files do not fit together."""
    examples = groups.read(
        collection,
        tokens,
        negatives,
        split=stage.split,
        depth=stage.depth,
        group=stage.group,
        random_negatives=stage.random_negatives,
        seed=seed,
    )
    scores = None
    if teacher is not None:
        if not Path(teacher).exists():
            raise InputError(f"the teacher's scores {teacher} do not exist; make them, or train without a teacher")
        scores = files.read_run(teacher)
        groups.check_teacher(scores, examples, math.ceil(stage.epochs), str(teacher))
    texts = files.read_queries(collection, stage.split)["text"].tolist()
    queries = sequences.queries(texts, encoder, threads)
    return Data(examples, queries, files.read_tokens(tokens), stage.in_batch, scores, str(teacher))


# --- a step's gradient -----------------------------------------------------------------------------------------------


def learn(network: nn.Module, batch: Batch, stage: Stage, group: Ranks, *, seed: int, step: int) -> dict[str, Tensor]:
    """Add this process's part of the gradient of the batch's loss to the weights; returns the step's numbers, 0-d.

    Every process encodes its share of the sequences, of all lengths; the loss is that of the whole batch in each.
    Dropout is drawn for (seed, step, chunk, process), so that both passes over a chunk drop the same.
    """
    device = next(network.parameters()).device
    mine = np.argsort(batch.sequences.lengths, kind="stable")[group.rank :: group.size]
    budget = stage.chunk * stage.passage_length
    cuts = [mine[rows] for rows in sequences.chunks(batch.sequences.lengths[mine], budget)]
    packs = [batch.sequences.take(rows).pack(device) for rows in cuts]

    def encode(chunk: int) -> Tensor:
        generator = training.generator(device, seed, "dropout", step, chunk, group.rank)
        with training.autocast(stage.precision, device):
            vectors = transformer.cls(network, packs[chunk], generator=generator)
        return vectors.to(torch.promote_types(vectors.dtype, torch.float32))  # bf16 is for products, not for losses

    def loss(vectors: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        return objective(vectors[: batch.queries], vectors[batch.queries :], batch, stage)

    rows = [torch.from_numpy(each).to(device) for each in cuts]
    return cached_backward(encode, rows, loss, len(batch.sequences), group)


def cached_backward(
    encode: Callable[[int], Tensor],
    cuts: list[Tensor],
    loss: Callable[[Tensor], tuple[Tensor, dict[str, Tensor]]],
    count: int,
    group: Ranks,
) -> dict[str, Tensor]:
    """Back-propagate ``loss(vectors)`` to the weights behind `encode`, holding the graph of one chunk at a time.

    encode(i): the vectors of chunk i, the same whenever it is called; cuts: the rows of each chunk, in all processes of
    the group together 0 to `count` - 1; loss: of all vectors [count, D], with numbers to show. The gradients of the
    processes are still to be added up.
    """
    last = len(cuts) - 1
    parts = []
    for chunk in range(len(cuts)):
        with torch.set_grad_enabled(chunk == last):
            parts.append(encode(chunk))
    kept = parts[last]
    vectors = kept.new_zeros(count, kept.shape[1])
    for rows, part in zip(cuts, parts, strict=True):
        vectors[rows] = part.detach()
    group.add_up([vectors])  # each row is 0 in every process but one
    value, numbers = loss(vectors.requires_grad_())
    (gradient,) = torch.autograd.grad(value, vectors)
    kept.backward(gradient[cuts[last]])
    del kept, parts  # the last chunk's graph, before another is built
    for chunk in range(last):
        encode(chunk).backward(gradient[cuts[chunk]])
    return numbers


def objective(queries: Tensor, passages: Tensor, batch: Batch, stage: Stage) -> tuple[Tensor, dict[str, Tensor]]:
    """The loss of a batch, equation 10, with a teacher L_kl + alpha L_cont; and numbers that tell how it goes.

    queries: [B, D]; passages: [B x N, D]. accuracy: the share of queries whose positive is the best of its group;
    spread: the standard deviation of the passages' vectors relative to their size, 0 where all are the same.
    """
    passages = passages.view(len(queries), -1, passages.shape[-1])  # [B, N, D]
    excluded = None if batch.excluded is None else torch.from_numpy(batch.excluded).to(queries.device)
    contrastive = losses.contrastive(queries, passages, in_batch=stage.in_batch, excluded=excluded)
    scores = losses.group_scores(queries, passages)
    flat = passages.detach().flatten(0, 1)
    numbers = {
        "contrastive": contrastive,
        "accuracy": (scores.argmax(-1) == 0).float().mean(),
        "spread": flat.std(0).norm() / flat.norm(dim=1).mean(),
    }
    loss = contrastive
    if batch.teacher is not None:
        numbers["kl"] = losses.kl(scores, torch.from_numpy(batch.teacher).to(queries.device))
        loss = losses.distillation(numbers["kl"], contrastive, stage.alpha)
    return loss, {"loss": loss.detach(), **{name: value.detach() for name, value in numbers.items()}}
