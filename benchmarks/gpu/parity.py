"""Compare forward passes and gradients on the device with float32 on the CPU.

The parts are attention, every objective, and the three trainers. An error is the distance of all
computed numbers as one vector: |here - reference| / |reference|. The error of a training step is
the larger of two errors, of its gradient and of its loss.

In float32, with TF32 off, the two differ by the order of sums: 1e-6 to 1e-5 after some layers. The
limit is 1e-4, below the error of TF32 (1e-3 for one product). In bfloat16 a number has 8 bits, so a
single product is off by up to 4e-3 and a gradient by several percent. The only measure of this is
the CPU's own bfloat16. Twice its error is allowed, because the kernels round at other positions.
simlm, dupmae and lexmae choose, by a draw or by a maximum. Nearly equal numbers may swap their
order, so four times the error is allowed there.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.gpu.results import Row
from benchmarks.gpu.steps import Run, attempt
from cdmae.models import attention, packed
from cdmae.training import setup
from cdmae.training.loop import add_up
from cdmae.training.ranks import Ranks

CPU = torch.device("cpu")
EXACT = 1e-4
LEAST = 4e-3
TIMES = {"simlm": 4.0, "dupmae": 4.0, "lexmae": 4.0}
LENGTHS = (1, 5, 2, 17, 40, 3, 1, 150)
CHOSEN = {  # rows that attend, of the packed passages of these lengths
    "all rows": None,
    "one row a passage": np.cumsum((0, *LENGTHS[:-1])),
    "passages without rows": np.array([2, 3, 9, 30, 31, 100]),
    "no rows": np.empty(0, np.int64),
}
Parts = tuple[Tensor, ...]
Learn = Callable[
    [str, Ranks], Tensor
]  # in a precision, shared by processes: adds the gradient, returns the loss


def rows(here: Run) -> Iterator[Row]:
    """Compare attention, objectives and training steps, the smallest first."""
    for size in (64, 128, 26):  # the packed kernel takes the first two
        for case, chosen in CHOSEN.items():
            name = f"attention, heads of {size}, {case}"
            yield from attempt(here, name, partial(_attention, name=name, size=size, chosen=chosen))
    from cdmae.pretraining.objectives import objectives

    steps = {name: partial(pretraining_step, name) for name in objectives()}
    steps |= {"retriever, with a teacher": retriever_step, "reranker, with R-Drop": reranker_step}
    for name, step in steps.items():
        yield from attempt(here, name, partial(_compared, name=name, step=step))


def _row(
    name: str,
    precision: str,
    computed: Parts,
    reference: Parts,
    rounded: Parts | None,
    note: str = "",
) -> Row:
    """Compare with the reference; rounded: the CPU's result in bfloat16."""
    allowed = EXACT
    value = error(computed, reference)
    if rounded is not None:
        own = error(rounded, reference)
        allowed = max(LEAST, TIMES.get(name, 2.0) * own)
        note = f"{note}; {own:.1e} on the CPU"
    return Row(
        f"{name}, {precision}",
        value,
        "",
        f"at most {allowed:.1e}",
        value <= allowed,
        note.strip("; "),
    )


def error(computed: Parts, reference: Parts) -> float:
    """Return the largest relative error of some tensors; NaN if a tensor contains NaN."""
    pairs = zip(computed, reference, strict=True)
    return float(
        torch.stack(
            [(one - other).norm() / other.norm().clamp_min(1e-30) for one, other in pairs]
        ).max()
    )


# --- attention ------------------------------------------------------------------------------------


def _attention(here: Run, name: str, size: int, chosen: np.ndarray | None) -> Iterator[Row]:
    """Compare outputs and the gradients of query, key and value; in bfloat16 of equal numbers."""
    for precision, dtype in (("fp32", torch.float32), ("bf16", torch.bfloat16)):
        reference = _attended(CPU, torch.float32, dtype, size, chosen)
        rounded = _attended(CPU, dtype, dtype, size, chosen) if precision == "bf16" else None
        yield _row(
            name, precision, _attended(here.device, dtype, dtype, size, chosen), reference, rounded
        )


def _attended(
    device: torch.device,
    dtype: torch.dtype,
    rounded: torch.dtype,
    size: int,
    chosen: np.ndarray | None,
    heads: int = 3,
) -> Parts:
    """Return output and gradients, float32 on the CPU, without padding.

    The inputs are `rounded` first.
    """
    starts = np.cumsum((0, *LENGTHS))
    of = packed.pack(packed.Ragged(np.zeros(starts[-1], np.int64), starts), device).layout
    to = of if chosen is None else packed.select(chosen, starts, device).layout
    draw = torch.Generator().manual_seed(1)
    inputs = []
    for layout in (to, of, of, to):
        states = torch.zeros(layout.rows, heads * size)
        states[: len(layout.cells)] = torch.randn(len(layout.cells), heads * size, generator=draw)
        inputs.append(states.to(rounded).to(dtype).to(device))
    query, key, value = (states.requires_grad_() for states in inputs[:3])
    with setup.autocast("bf16" if dtype == torch.bfloat16 else "fp32", device):
        out = attention.attend(
            query, key, value, attention.Grid(to, heads), attention.Grid(of, heads)
        )
    parts = zip(
        (out, *torch.autograd.grad(out, (query, key, value), inputs[3])),
        (to, to, of, of),
        strict=True,
    )
    return tuple(states[: len(layout.cells)].detach().float().cpu() for states, layout in parts)


# --- objectives and trainers ----------------------------------------------------------------------


def _compared(here: Run, name: str, step: Callable[[], tuple[nn.Module, Learn]]) -> Iterator[Row]:
    """Compare loss and gradient of a step; several processes share only the device's step."""
    network, learn = step()
    reference, rounded = (
        learnt(network, learn, precision, Ranks()) for precision in ("fp32", "bf16")
    )
    for precision, other in (("fp32", None), ("bf16", rounded)):
        computed = learnt(network, learn, precision, here.group)
        note = f"loss {computed[0].item():.5f}, the CPU's {reference[0].item():.5f}"
        yield _row(name, precision, computed, reference, other, note)


def learnt(network: nn.Module, learn: Learn, precision: str, group: Ranks) -> Parts:
    """Return the loss of a step on the device of the group, and its gradient."""
    network.zero_grad()
    network.to(group.device)
    loss = learn(precision, group).detach()
    add_up(network.parameters(), {"loss": loss}, group)
    trained = [weight for weight in network.parameters() if weight.requires_grad]
    return loss.cpu(), torch.cat([weight.grad.cpu().flatten() for weight in trained])


def pretraining_step(name: str, size: str = "tiny") -> tuple[nn.Module, Learn]:
    """Return a network with an objective, and a step of its pre-training."""
    from benchmarks import pretraining
    from cdmae.pretraining import trainer

    options = argparse.Namespace(size=size, vocabulary=1000, length=64, batch=12, objective=name)
    network = pretraining.networks(options)[0]
    settings = pretraining.settings(name)
    batch = pretraining.step(options)

    def learn(precision: str, group: Ranks) -> Tensor:
        with patch.object(trainer, "micro_batch", lambda *_: 200):  # rows: several for each process
            return trainer.learn(
                network, batch, replace(settings, precision=precision), group, seed=1, step=0
            )["loss"]

    return network, learn


def retriever_step() -> tuple[nn.Module, Learn]:
    """Return an encoder, and a retriever's training step with other positives and a teacher."""
    from benchmarks import finetuning
    from cdmae.config.heads import Dense
    from cdmae.finetuning import retriever
    from cdmae.finetuning.objectives import Objective

    draw = np.random.default_rng(2)
    teacher = draw.standard_normal((6, 4), np.float32)
    excluded = draw.random((6, 24)) < 0.1
    excluded[np.arange(6), np.arange(0, 24, 4)] = False  # the positive
    batch = replace(finetuning.batch("tiny", 6, 4), excluded=excluded, teacher=teacher)
    stage = Dense(collection="c", chunk=4, passage_length=144, temperature=10.0)
    network = finetuning.network("tiny")

    def learn(precision: str, group: Ranks) -> Tensor:
        objective = Objective(replace(stage, precision=precision))
        return retriever.learn(network, batch, objective, group, seed=1, step=0)["loss"]

    return network, learn


def reranker_step() -> tuple[nn.Module, Learn]:
    """Return a cross-encoder, and a step of its training on all pairs."""
    from benchmarks import finetuning
    from cdmae.config.stages import Reranker
    from cdmae.finetuning import reranker

    rest = {
        "forward_factor": 1,
        "chunk": 8,
        "max_length": 144,
    }  # which pairs are best is left to another part
    stage = Reranker(collection="c", group=4, rdrop=1.0, **rest)
    network = finetuning.cross_encoder("tiny")
    batch = reranker.Batch(finetuning.pairs("tiny", 24))

    def learn(precision: str, group: Ranks) -> Tensor:
        return reranker.learn(
            network, batch, replace(stage, precision=precision), group, seed=1, step=0
        )["loss"]

    return network, learn
