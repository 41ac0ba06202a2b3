"""The reranker (section 3.4, stage 3): a cross-encoder that reads query and passage together, s_ce(q, d) = CE(q, d).

It is trained by the list-wise contrastive loss over each query's own group, without in-batch negatives. A group is
scored once without dropout, and only its best 1 / forward_factor passages, the positive among them, are learnt from
(SimLM). Queries do not meet in the loss, so a chunk is some whole queries and its gradient is added to the others'.

Shapes: `B` queries, `N` passages per query, `M` = N / forward_factor of them learnt from.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor, nn

from cdmae import files, finetuning, groups, losses, models, sequences, training, transformer
from cdmae.finetuning import Meter
from cdmae.packed import Packed
from cdmae.progress import Progress
from cdmae.ranks import Ranks
from cdmae.sequences import Sequences

if TYPE_CHECKING:
    from cdmae.config import Stage
    from cdmae.files import Tokens
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
    seed: int,
    threads: int,
    state: Path,
    output: Path,
) -> None:
    """Train the reranker `name` from a pre-trained encoder and write it to `output`.

    negatives: a run over the training queries. The state folder lets a killed training go on to the same bits (on the
    CPU).
    """
    device = training.set_up(threads)
    data = read(stage, encoder, collection, tokens, negatives, seed, threads)
    model = models.start_reranker(
        encoder, max_length=stage.max_length, precision=stage.precision, seed=training.seed_of(seed, "head")
    )
    models.check_tokens(model, data.passages.word_starts, str(tokens))
    network = model.network.to(device)
    parameters = list(network.parameters())
    adam = training.optimiser(network, stage.learning_rate, stage.weight_decay)
    steps, warmup = finetuning.schedule(stage, len(data.examples), name)
    meter = Meter(steps)
    with finetuning.shared(state, name, stage, device) as (held, group), training.Stop() as stop:
        begun = time.monotonic() - finetuning.restore(held, group, network, adam, meter, name)
        curve = held.curve(["step", "loss", "listwise", "accuracy", "spread", "learning_rate"])
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
class Data:
    """Everything that batches are drawn from."""

    examples: Examples
    queries: Tokens
    passages: Tokens

    def batch(self, rows: np.ndarray, epoch: int, model: Model) -> Sequences:
        """The B x N pairs of some examples in an epoch, group by group, the positive first."""
        drawn = self.examples.draw(rows, epoch)
        asked = np.repeat(self.examples.queries[rows], drawn.shape[1])
        return sequences.pairs(
            self.queries, asked, self.passages, drawn.ravel(), model.lengths["max_length"], model.vocabulary
        )


def read(stage: Stage, encoder: Path, collection: Path, tokens: Path, negatives: Path, seed: int, threads: int) -> Data:
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
    texts = files.read_queries(collection, stage.split)["text"].tolist()
    return Data(examples, sequences.queries(texts, encoder, threads), files.read_tokens(tokens))


# --- a step's gradient -----------------------------------------------------------------------------------------------


def learn(
    network: nn.Module, pairs: Sequences, stage: Stage, group: Ranks, *, seed: int, step: int
) -> dict[str, Tensor]:
    """Add this process's part of the gradient of a batch's loss to the weights; returns the step's numbers, 0-d.

    pairs: B x N, query by query. The loss is the mean over the B queries, whatever the chunk and whoever computes which
    of them; dropout is drawn for (seed, step, chunk, process).
    """
    device = next(network.parameters()).device
    queries = len(pairs) // stage.group
    chosen = hardest(network, pairs, np.arange(queries)[group.rank :: group.size], stage, device)  # [B, M]
    passes = 2 if stage.rdrop else 1
    per_chunk = max(1, stage.chunk // (passes * chosen.shape[1]))
    totals: dict[str, Tensor] = {}
    for chunk, begin in enumerate(range(0, len(chosen), per_chunk)):
        rows = chosen[begin : begin + per_chunk]
        packed = pairs.take(np.tile(rows.ravel(), passes)).pack(device)
        generator = training.generator(device, seed, "dropout", step, chunk, group.rank)
        with training.autocast(stage.precision, device):
            found = scores(network, packed, generator=generator).view(passes, *rows.shape)
        loss, numbers = objective(found, stage)
        share = len(rows) / queries
        (loss * share).backward()
        for name, value in numbers.items():
            totals[name] = totals.get(name, 0) + value * share
    group.add_up(list(totals.values()))
    return totals


def hardest(
    network: nn.Module, pairs: Sequences, queries: np.ndarray, stage: Stage, device: torch.device
) -> np.ndarray:
    """The pairs that some queries are learnt from, int64 [B, M]: the positive of each, then its best negatives."""
    rows = np.arange(len(pairs)).reshape(-1, stage.group)[queries]
    if stage.forward_factor == 1:
        return rows
    kept = stage.group // stage.forward_factor
    found = score_all(network, pairs.take(rows.ravel()), stage.precision, stage.chunk * stage.max_length, device)
    best = np.argsort(-found.reshape(rows.shape)[:, 1:], axis=1, kind="stable")[:, : kept - 1] + 1
    return np.take_along_axis(rows, np.concatenate([np.zeros((len(rows), 1), np.int64), best], axis=1), axis=1)


def objective(found: Tensor, stage: Stage) -> tuple[Tensor, dict[str, Tensor]]:
    """The list-wise loss of scores [1, B, M], or with R-Drop of [2, B, M], the same pairs under two dropout masks.

    accuracy: the share of queries whose positive is best; spread: the standard deviation of the scores within a group
    relative to their size, 0 where the model does not read its input.
    """
    listwise = losses.listwise(found[0])
    loss = losses.rdrop(found[0], found[1], weight=stage.rdrop) if len(found) == 2 else listwise
    held = found[0].detach()
    numbers = {
        "loss": loss.detach(),
        "listwise": listwise.detach(),
        "accuracy": (held.argmax(-1) == 0).float().mean(),
        "spread": held.std(-1).mean() / held.abs().mean().clamp_min(1e-12),
    }
    return loss, numbers


# --- scores ----------------------------------------------------------------------------------------------------------


def scores(network: nn.Module, packed: Packed, *, generator: torch.Generator | None = None) -> Tensor:
    """s_ce of packed pairs, raw logits [n]: the head of transformers' ForSequenceClassification on [CLS].

    Dropout follows the model's config when a generator is given, and is off when not.
    """
    config, found = network.config, transformer.cls(network.base_model, packed, generator=generator)
    share = config.hidden_dropout_prob if config.classifier_dropout is None else config.classifier_dropout
    head = network.classifier
    if config.model_type == "bert":
        found = torch.tanh(network.bert.pooler.dense(found))
    else:
        found, head = head.activation(head.dense(transformer.drop(found, share, generator))), head.out_proj
    logits = head(transformer.drop(found, share, generator)).squeeze(-1)
    return logits.to(torch.promote_types(logits.dtype, torch.float32))  # bf16 is for products, not for losses


@torch.no_grad()
def score_all(network: nn.Module, pairs: Sequences, precision: str, budget: int, device: torch.device) -> np.ndarray:
    """The scores of many pairs, float32 [n], computed in chunks of at most `budget` word-pieces sorted by length."""
    found = np.empty(len(pairs), dtype=np.float32)
    for rows in sequences.chunks(pairs.lengths, budget):
        with training.autocast(precision, device):
            found[rows] = scores(network, pairs.take(rows).pack(device)).cpu().numpy()
    return found
