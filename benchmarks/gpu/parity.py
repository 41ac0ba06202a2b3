"""Forward and gradient on the device beside the CPU's float32: attention, every objective, the three trainers.

An error is that of everything computed, as one vector: |theirs - reference| / |reference|. That of a training step is
its gradient's or its loss's, whichever is larger.

In float32, with TF32 off, the two differ by the order of sums: 1e-6 to 1e-5 through some layers. 1e-4 is allowed, which
TF32 (1e-3 for one product) does not reach. In bfloat16 a number has 8 bits, so that a single product is off by up to
4e-3 and a gradient by several percent: nothing says how far, but the CPU's own bfloat16. Twice its error is allowed,
because the kernels round at other places. simlm and dupmae choose, by a draw and by a maximum: what is nearly equal may
fall on either side, so four times is allowed there.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.gpu.results import Row, Run, attempt
from cdmae.models import attention, packed
from cdmae.training.ranks import Ranks

CPU = torch.device("cpu")
EXACT, LEAST = 1e-4, 4e-3
TIMES = {"simlm": 4.0, "dupmae": 4.0}
LENGTHS = (1, 5, 2, 17, 40, 3, 1, 150)
CHOSEN = {  # rows that attend, of the packed passages of these lengths
    "all rows": None,
    "one row a passage": np.cumsum((0, *LENGTHS[:-1])),
    "passages without rows": np.array([2, 3, 9, 30, 31, 100]),
    "no rows": np.empty(0, np.int64),
}
Parts = tuple[Tensor, ...]
Learn = Callable[
    [str, Ranks], tuple[Tensor, nn.Module]
]  # precision, processes -> the loss and a network with gradients


def rows(run: Run) -> Iterator[Row]:
    """Compare everything, the smallest first."""
    for size in (64, 128, 26):  # the packed kernel takes the first two
        for case, chosen in CHOSEN.items():
            name = f"attention, heads of {size}, {case}"
            yield from attempt(run, name, lambda run, n=name, s=size, c=chosen: _attention(run, n, s, c))
    try:
        from cdmae.pretraining.objectives import objectives
    except ModuleNotFoundError as error:
        yield Row("objectives and trainers", note=f"not here: {error.name}")
        return
    for name in objectives():
        yield from attempt(run, name, lambda run, n=name: _compared(run, n, lambda *how: _pretrained(n, *how)))
    yield from attempt(run, "retriever", lambda run: _compared(run, "retriever, with a teacher", _retriever))
    yield from attempt(run, "reranker", lambda run: _compared(run, "reranker, with R-Drop", _reranker))


def _row(name: str, precision: str, found: Parts, known: Parts, rounded: Parts | None, note: str = "") -> Row:
    """Compare with the reference; rounded: what the CPU makes of it in bfloat16."""
    allowed, value = EXACT, _error(found, known)
    if rounded is not None:
        own = _error(rounded, known)
        allowed, note = max(LEAST, TIMES.get(name, 2.0) * own), f"{note}; {own:.1e} on the CPU"
    return Row(f"{name}, {precision}", value, "", f"at most {allowed:.1e}", value <= allowed, note.strip("; "))


def _error(found: Parts, known: Parts) -> float:
    pairs = zip(found, known, strict=True)
    return max(float((one - other).norm() / other.norm().clamp_min(1e-30)) for one, other in pairs)


# --- attention -------------------------------------------------------------------------------------------------------


def _attention(run: Run, name: str, size: int, chosen: np.ndarray | None) -> Iterator[Row]:
    """Compare what comes out, and the gradients of query, key and value; in bfloat16 of the very same numbers."""
    for precision, dtype in (("fp32", torch.float32), ("bf16", torch.bfloat16)):
        known = _attended(CPU, torch.float32, dtype, size, chosen)
        rounded = _attended(CPU, dtype, dtype, size, chosen) if precision == "bf16" else None
        yield _row(name, precision, _attended(run.device, dtype, dtype, size, chosen), known, rounded)


def _attended(
    device: torch.device, dtype: torch.dtype, rounded: torch.dtype, size: int, chosen: np.ndarray | None, heads: int = 3
) -> Parts:
    """Return output and gradients, float32 on the CPU, without the filler; their inputs are `rounded` first."""
    starts = np.cumsum((0, *LENGTHS))
    of = packed.pack(packed.Ragged(np.zeros(starts[-1], np.int64), starts), device).layout
    to = of if chosen is None else packed.select(chosen, starts, device).layout
    draw, inputs = torch.Generator().manual_seed(1), []
    for layout in (to, of, of, to):
        states = torch.zeros(layout.rows, heads * size)
        states[: len(layout.cells)] = torch.randn(len(layout.cells), heads * size, generator=draw)
        inputs.append(states.to(rounded).to(dtype).to(device))
    query, key, value = (states.requires_grad_() for states in inputs[:3])
    out = attention.attend(query, key, value, attention.Grid(to, heads), attention.Grid(of, heads))
    parts = zip((out, *torch.autograd.grad(out, (query, key, value), inputs[3])), (to, to, of, of), strict=True)
    return tuple(states[: len(layout.cells)].detach().float().cpu() for states, layout in parts)


# --- objectives and trainers -----------------------------------------------------------------------------------------


def _compared(run: Run, name: str, learn: Learn) -> Iterator[Row]:
    """Compare loss and gradient of a step; several processes share the device's, the CPU's is of one."""
    known, rounded = (_learnt(learn, precision, Ranks()) for precision in ("fp32", "bf16"))
    for precision, other in (("fp32", None), ("bf16", rounded)):
        found = _learnt(learn, precision, run.group)
        yield _row(name, precision, found, known, other, f"loss {found[0].item():.5f}, the CPU's {known[0].item():.5f}")


def _learnt(learn: Learn, precision: str, group: Ranks) -> Parts:
    loss, network = learn(precision, group)
    return loss.detach().cpu(), torch.cat([weight.grad.cpu().flatten() for weight in network.parameters()])


def _pretrained(name: str, precision: str, group: Ranks) -> tuple[Tensor, nn.Module]:
    from dataclasses import replace

    from benchmarks import pretraining
    from cdmae.pretraining import trainer

    given = argparse.Namespace(size="tiny", vocabulary=1000, length=64, batch=12, objective=name)
    network, settings = pretraining.networks(given)[0], replace(pretraining.settings(name), precision=precision)
    with patch.object(trainer, "micro_batch", lambda *_: 200):  # rows: several for each process
        step = pretraining.step(given)
        numbers = trainer.learn(network.to(group.device), step, settings, group, seed=1, step=0)
    return numbers["loss"], network


def _retriever(precision: str, group: Ranks) -> tuple[Tensor, nn.Module]:
    from dataclasses import replace

    from benchmarks import finetuning
    from cdmae.config.schema import Stage
    from cdmae.finetuning import retriever

    batch, draw = finetuning.batch("tiny", 6, 4), np.random.default_rng(2)
    teacher = draw.standard_normal((6, 4), np.float32)
    excluded = draw.random((6, 24)) < 0.1
    excluded[np.arange(6), np.arange(0, 24, 4)] = False  # the positive
    batch = replace(batch, excluded=excluded, teacher=teacher)
    stage = Stage(kind="retriever", collection="", chunk=4, passage_length=144, precision=precision, temperature=10.0)
    network = finetuning.network("tiny").to(group.device)
    return retriever.learn(network, batch, stage, group, seed=1, step=0)["loss"], network


def _reranker(precision: str, group: Ranks) -> tuple[Tensor, nn.Module]:
    from benchmarks import finetuning
    from cdmae.config.schema import Stage
    from cdmae.finetuning import reranker

    rest = {"forward_factor": 1, "chunk": 8, "max_length": 144}  # which pairs are best is left to another part
    stage = Stage(kind="reranker", collection="", group=4, precision=precision, rdrop=1.0, **rest)
    network, pairs = finetuning.cross_encoder("tiny").to(group.device), finetuning.pairs("tiny", 24)
    return reranker.learn(network, pairs, stage, group, seed=1, step=0)["loss"], network
