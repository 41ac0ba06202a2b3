"""Check and measure the GPU code in ten minutes, on a machine with one NVIDIA GPU.

    python -m benchmarks.gpu --output FOLDER                     everything
    python -m benchmarks.gpu --output FOLDER --parts parity      one part

The machine needs this checkout, a GPU of Ampere or newer, and the packages of `envs/gpu.yaml`, but
no network and no `./run`. Without a GPU the command runs toy sizes, and targets for speed do not
count. Every row is added to ``FOLDER/results.jsonl`` at once. A step that fails is a row, and the
next one runs. Exits with 1 if a check fails.

parity   loss and gradient compared with float32 on the CPU: attention, every objective, a
         retriever's and a reranker's training; relative errors. In float32, with TF32 off, the
         error is at most 1e-4, below that of TF32. In bfloat16, twice the error of bfloat16 on the
         CPU is allowed, because kernels round at other positions (four times for objectives that
         choose by a draw or by a maximum, where nearly equal numbers may swap their order), or 4e-3
         if that is more, the error of a single product.
search   faiss on the GPU compared with the CPU, bit by bit.
speed    a step of pre-training (BERT base) and of fine-tuning (64 x 32 passages, and 32 x 64 with a
         teacher), with clipping and AdamW, and encoding; next to transformers' modules with SDPA on
         sorted batches. MFU: the plan's operations (`cdmae.plan.flops`) on real tokens, divided by
         the device's dense peak in bfloat16.
"""

from __future__ import annotations

import argparse
import math
import sys
import time
import traceback
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks import finetuning, forms, pretraining
from cdmae.config.heads import Dense
from cdmae.config.stages import Reranker
from cdmae.finetuning import reranker, retriever
from cdmae.models import attention, packed
from cdmae.models.checkpoint import Model
from cdmae.plan import flops, machine
from cdmae.plan.flops import Network
from cdmae.pretraining import trainer
from cdmae.pretraining.objectives import objectives
from cdmae.retrieval import vectors
from cdmae.retrieval.search import search
from cdmae.training import setup
from cdmae.training.ranks import Ranks

CPU = torch.device("cpu")
EXACT = 1e-4
LEAST = 4e-3
TIMES = {"simlm": 4.0, "dupmae": 4.0, "lexmae": 4.0}
LENGTHS = (1, 5, 2, 17, 40, 3, 1, 150)  # of packed passages
CHOSEN = {  # rows that attend
    "all rows": None,
    "one row a passage": np.cumsum((0, *LENGTHS[:-1])),
    "passages without rows": np.array([2, 3, 9, 30, 31, 100]),
    "no rows": np.empty(0, np.int64),
}
PRETRAINING, FINETUNING, ENCODING = 0.45, 0.35, 2.0  # targets
# dense, in mixed precision; the plan's H100 is the SXM
PEAK = {"h100pcie": 756e12, "h100nvl": 835e12}
PEAK |= {name: mixed for name, (mixed, _) in machine.PEAK.items()}
Parts = tuple[Tensor, ...]
# In a precision, shared by processes: adds the gradient, returns the loss
Learn = Callable[[str, Ranks], Tensor]
Row = dict[str, object]
Steps = Iterator[tuple[str, Callable[[], Iterator[Row]]]]


# Of the paper on a GPU, toy sizes on a CPU. batch, length: of a pre-training step. groups: queries
# x passages of a fine-tuning step, and of one with a teacher. chunk: passages computed together.
# encoded, found: passages that are encoded, and searched. peer: passages in a peer's batch.
PAPER = SimpleNamespace(
    network="base",
    vocabulary=30522,
    batch=2048,
    length=150,
    groups=((64, 32), (32, 64)),
    chunk=768,
    encoded=1 << 14,
    peer=256,
    found=500_000,
    repeats=5,
)
TOY = SimpleNamespace(
    network="tiny",
    vocabulary=4096,
    batch=8,
    length=32,
    groups=((3, 4), (2, 6)),
    chunk=8,
    encoded=40,
    peer=16,
    found=500,
    repeats=1,
)


def row(
    name: str,
    value: float | str = "",
    unit: str = "",
    target: str = "",
    passed: bool | None = None,
    note: str = "",
) -> Row:
    """Make a row: a value with its unit, or a word; passed: whether it reaches its target."""
    if not isinstance(value, str):
        value = float(value) if math.isfinite(value) else str(float(value))
    return {
        "name": name,
        "value": value,
        "unit": unit,
        "target": target,
        "passed": None if passed is None else bool(passed),
        "note": note,
    }


def network_of(sizes: SimpleNamespace) -> Network:
    """Return the network's dimensions, in the form that `cdmae.plan` counts."""
    layers, width, heads = pretraining.SIZES[sizes.network]
    return Network(layers, width, 4 * width, sizes.vocabulary, 512, heads)


# --- parity ---------------------------------------------------------------------------------------


def parity(device: torch.device, sizes: SimpleNamespace) -> Steps:
    """Compare attention, objectives and training steps, the smallest first."""
    del sizes
    for size in (64, 128, 26):  # the packed kernel takes the first two
        for case, chosen in CHOSEN.items():
            name = f"attention, heads of {size}, {case}"
            yield name, partial(_attention, device, name, size, chosen)
    steps = {name: partial(pretraining_step, name) for name in objectives()}
    steps |= {"retriever, with a teacher": retriever_step, "reranker, with R-Drop": reranker_step}
    for name, step in steps.items():
        yield name, partial(_step, device, name, step)


def compared(
    name: str, precision: str, computed: Parts, reference: Parts, rounded: Parts | None
) -> Row:
    """Compare with the reference; rounded: the CPU's result in bfloat16."""
    allowed = EXACT
    value = error(computed, reference)
    note = ""
    if rounded is not None:
        own = error(rounded, reference)
        allowed = max(LEAST, TIMES.get(name, 2.0) * own)
        note = f"{own:.1e} on the CPU"
    target = f"at most {allowed:.1e}"
    return row(f"{name}, {precision}", value, "", target, value <= allowed, note)


def error(computed: Parts, reference: Parts) -> float:
    """Return the largest relative error of some tensors; NaN if a tensor contains NaN."""
    pairs = zip(computed, reference, strict=True)
    errors = [(one - other).norm() / other.norm().clamp_min(1e-30) for one, other in pairs]
    return float(torch.stack(errors).max())


def _attention(
    device: torch.device, name: str, size: int, chosen: np.ndarray | None
) -> Iterator[Row]:
    """Compare outputs and the gradients of query, key and value; in bfloat16 of equal numbers."""
    for precision, kind in (("fp32", torch.float32), ("bf16", torch.bfloat16)):
        reference = _attended(CPU, torch.float32, kind, size, chosen)
        rounded = _attended(CPU, kind, kind, size, chosen) if precision == "bf16" else None
        here = _attended(device, kind, kind, size, chosen)
        yield compared(name, precision, here, reference, rounded)


def _attended(
    device: torch.device,
    kind: torch.dtype,
    rounded: torch.dtype,
    size: int,
    chosen: np.ndarray | None,
) -> Parts:
    """Return output and gradients without padding; the inputs are `rounded` first."""
    heads = 3
    starts = np.cumsum((0, *LENGTHS))
    of = packed.pack(packed.Ragged(np.zeros(starts[-1], np.int64), starts), device).layout
    to = of if chosen is None else packed.select(chosen, starts, device).layout
    draw = torch.Generator().manual_seed(1)
    inputs = []
    for layout in (to, of, of, to):
        states = torch.zeros(layout.rows, heads * size)
        states[: len(layout.cells)] = torch.randn(len(layout.cells), heads * size, generator=draw)
        inputs.append(states.to(rounded).to(kind).to(device))
    query, key, value = (states.requires_grad_() for states in inputs[:3])
    with setup.autocast("bf16" if kind == torch.bfloat16 else "fp32", device):
        grids = (attention.Grid(to, heads), attention.Grid(of, heads))
        out = attention.attend(query, key, value, *grids)
    found = (out, *torch.autograd.grad(out, (query, key, value), inputs[3]))
    pairs = zip(found, (to, to, of, of), strict=True)
    return tuple(states[: len(layout.cells)].detach().float().cpu() for states, layout in pairs)


def _step(
    device: torch.device, name: str, step: Callable[[], tuple[nn.Module, Learn]]
) -> Iterator[Row]:
    """Compare loss and gradient of a training step."""
    network, learn = step()
    reference = learnt(network, learn, "fp32", CPU)
    rounded = learnt(network, learn, "bf16", CPU)
    for precision, other in (("fp32", None), ("bf16", rounded)):
        here = learnt(network, learn, precision, device)
        yield compared(name, precision, here, reference, other)


def learnt(network: nn.Module, learn: Learn, precision: str, device: torch.device) -> Parts:
    """Return the loss of a step on a device, and its gradient."""
    network.zero_grad()
    network.to(device)
    loss = learn(precision, Ranks(device=device)).detach().cpu()
    trained = [weight for weight in network.parameters() if weight.requires_grad]
    return loss, torch.cat([weight.grad.cpu().flatten() for weight in trained])


def pretraining_step(name: str, size: str = "tiny") -> tuple[nn.Module, Learn]:
    """Return a network with an objective, and a step of its pre-training."""
    options = argparse.Namespace(size=size, vocabulary=1000, length=64, batch=12, objective=name)
    network = pretraining.networks(options)[0]
    settings = pretraining.settings(name)
    batch = pretraining.step(options)

    def learn(precision: str, group: Ranks) -> Tensor:
        chosen = replace(settings, precision=precision)
        with patch.object(trainer, "micro_batch", lambda *_: 200):  # rows: several micro-batches
            return trainer.learn(network, batch, chosen, group, seed=1, step=0)["loss"]

    return network, learn


def retriever_step() -> tuple[nn.Module, Learn]:
    """Return an encoder, and a retriever's training step with other positives and a teacher."""
    draw = np.random.default_rng(2)
    teacher = draw.standard_normal((6, 4), np.float32)
    excluded = draw.random((6, 24)) < 0.1
    excluded[np.arange(6), np.arange(0, 24, 4)] = False  # the positive
    batch = replace(finetuning.batch("tiny", 6, 4), excluded=excluded, teacher=teacher)
    stage = Dense(collection="c", chunk=4, passage_length=144, temperature=10.0)
    network = finetuning.network("tiny")

    def learn(precision: str, group: Ranks) -> Tensor:
        chosen = replace(stage, precision=precision)
        return retriever.learn(network, batch, chosen, group, seed=1, step=0)["loss"]

    return network, learn


def reranker_step() -> tuple[nn.Module, Learn]:
    """Return a cross-encoder, and a step of its training on all pairs."""
    # without a choice of the best pairs
    rest = {"forward_factor": 1, "chunk": 8, "max_length": 144}
    stage = Reranker(collection="c", group=4, rdrop=1.0, **rest)
    network = finetuning.cross_encoder("tiny")
    batch = reranker.Batch(finetuning.pairs("tiny", 24))

    def learn(precision: str, group: Ranks) -> Tensor:
        chosen = replace(stage, precision=precision)
        return reranker.learn(network, batch, chosen, group, seed=1, step=0)["loss"]

    return network, learn


# --- search ---------------------------------------------------------------------------------------


def searching(device: torch.device, sizes: SimpleNamespace) -> Steps:
    """Compare search on the device with the CPU's, bit by bit."""
    yield "search", partial(_search, device, sizes)


def _search(device: torch.device, sizes: SimpleNamespace) -> Iterator[Row]:
    import faiss

    draw = np.random.default_rng(1)
    depth = min(1000, sizes.found // 50)
    passages = draw.standard_normal((sizes.found, network_of(sizes).width), np.float32)
    passages[-sizes.found // 10 :] = passages[: sizes.found // 10]  # ties
    queries = draw.standard_normal((200, network_of(sizes).width), np.float32)
    by_gpu = hasattr(faiss, "StandardGpuResources") and faiss.get_num_gpus() > 0
    runs = {}
    for place in dict.fromkeys(("cpu", str(device) if by_gpu else "cpu")):
        begun = time.perf_counter()
        threads = torch.get_num_threads()
        runs[place] = search(queries, [passages], depth, threads=threads, device=place)
        seconds = time.perf_counter() - begun
        yield row(f"search on {place}", len(queries) / seconds, "queries/s")
    reference = runs.pop("cpu")
    best = np.argsort(-(queries[:5] @ passages.T), axis=1, kind="stable")[:, :depth]
    shares = [np.isin(best[row], reference.ranked(row)[0]).mean() for row in range(5)]
    share = float(np.mean(shares))
    yield row("the CPU's search and a full sort", share, "", "at least 0.999", share >= 0.999)
    for place, run in runs.items():
        same = np.array_equal(reference.passages, run.passages)
        same = same and np.array_equal(reference.scores, run.scores)
        yield row(f"the run of {place} is the CPU's", str(same), "", "bit by bit", same)


# --- speed ----------------------------------------------------------------------------------------


def speed(device: torch.device, sizes: SimpleNamespace) -> Steps:
    """Measure first the steps that take most of the paper's compute time."""
    yield "pre-training", partial(_pretraining, device, sizes)
    for taught in (False, True):
        yield "fine-tuning", partial(_finetuning, device, sizes, taught=taught)
    yield "encoding", partial(_encoding, device, sizes)


def seconds_of(device: torch.device, step: Callable[[], object], repeats: int) -> float:
    """Return the median time of several steps after a warm-up step."""
    wait = torch.cuda.synchronize if device.type == "cuda" else lambda: None
    taken = []
    for _ in range(repeats + 1):
        wait()
        begun = time.perf_counter()
        step()
        wait()
        taken.append(time.perf_counter() - begun)
    return float(np.median(taken[1:]))


def measured(
    device: torch.device,
    name: str,
    tokens: int,
    operations: float,
    steps: tuple[Callable[[], object], Callable[[], object]],
    repeats: int,
    target: float = 0.0,
    faster: float = 0.0,
) -> Iterator[Row]:
    """Measure our step and the peer's: tokens per second, share of the peak, and speed-up.

    target, faster: of the share, and of the speed-up. The card's name decides about its peak.
    """
    on_gpu = device.type == "cuda"
    ours, peer = (seconds_of(device, step, repeats) for step in steps)
    yield row(f"{name}: speed", tokens / ours, "tokens/s", note=f"{ours:.4g} s a step")
    card = torch.cuda.get_device_name() if on_gpu else "no GPU"
    words = card.lower().replace(" ", "")
    peak = next((peak for part, peak in PEAK.items() if part in words), math.nan)
    share = operations / ours / peak
    passed = share >= target if target and peak == peak else None
    note = f"{operations / ours / 1e12:.4g} TFLOP/s, {card}"
    yield row(f"{name}: MFU", share, "", f"at least {target}", passed, note)
    passed = peer / ours >= faster if faster and on_gpu else None
    goal = f"at least {faster:g}" if faster else ""
    yield row(f"{name}: times as fast as transformers, sorted", peer / ours, "", goal, passed)
    if on_gpu:
        yield row(f"{name}: memory", torch.cuda.max_memory_allocated() / 2**30, "GB")


def updating(network: nn.Module, learn: Callable[[], object]) -> Callable[[], None]:
    """Return a step of `learn`, clipping and AdamW."""
    adam = setup.adamw(network.parameters(), 0.01)
    setup.set_rate(adam, 1e-5)

    def step() -> None:
        learn()
        setup.clip(network.parameters(), 1.0)
        adam.step()
        adam.zero_grad()

    return step


def _pretraining(device: torch.device, sizes: SimpleNamespace) -> Iterator[Row]:
    options = argparse.Namespace(
        size=sizes.network, vocabulary=sizes.vocabulary, length=sizes.length, batch=sizes.batch
    )
    options.objective = "mae"
    network, peer = pretraining.networks(options)
    network.to(device)
    settings = pretraining.settings("mae")
    batch = pretraining.step(options)
    counts = np.diff(batch.sides["encoder"].inputs.starts)
    corpus = SimpleNamespace(tokens=lambda _: counts)  # what the plan asks of a collection
    operations = flops.passage(network_of(sizes), settings, corpus).sum()
    group = Ranks(device=device)
    ours = partial(trainer.learn, network, batch, settings, group, seed=1, step=0)
    theirs = partial(peer.learn, batch, sizes.peer, device, "bf16")
    steps = (updating(network, ours), updating(network, theirs))
    sums = (counts.sum(), operations, steps, sizes.repeats)
    yield from measured(device, "pre-training", *sums, PRETRAINING)


def _finetuning(device: torch.device, sizes: SimpleNamespace, *, taught: bool) -> Iterator[Row]:
    queries, group = sizes.groups[taught]
    network = finetuning.network(sizes.network).to(device)
    plain = finetuning.batch(sizes.network, queries, group)
    batch = replace(plain, excluded=np.zeros((queries, queries * group), bool))
    if taught:
        scores = np.random.default_rng(1).standard_normal((queries, group), np.float32)
        batch = replace(batch, teacher=scores)
    stage = Dense(collection="c", passage_length=144, temperature=1.0, chunk=sizes.chunk)
    ours = partial(retriever.learn, network, batch, stage, Ranks(device=device), seed=1, step=0)

    def theirs() -> None:
        with torch.device(device), setup.autocast("bf16", device):
            finetuning.sorted_step(network, plain, sizes.peer)

    steps = (updating(network, ours), updating(network, theirs))
    operations = flops.TRAINED * network_of(sizes).forward(batch.sequences.lengths).sum()
    name = f"fine-tuning, {queries} x {group}{' with a teacher' * taught}"
    sums = (batch.sequences.starts[-1], operations, steps, sizes.repeats)
    yield from measured(device, name, *sums, FINETUNING)


def _encoding(device: torch.device, sizes: SimpleNamespace) -> Iterator[Row]:
    network = finetuning.network(sizes.network).to(device).eval()
    read = finetuning.batch(sizes.network, 1, sizes.encoded).sequences
    read = read.take(np.arange(1, len(read)))
    order = np.argsort(-read.lengths, kind="stable")

    @torch.inference_mode()
    def theirs() -> None:
        with torch.device(device), setup.autocast("bf16", device):
            for begin in range(0, len(order), sizes.peer):
                rows = order[begin : begin + sizes.peer]
                states = network(**finetuning.padded(read, rows)).last_hidden_state
                states[:, 0].float().cpu()

    model = Model("retriever", network, None, {}, "bf16")
    ours = partial(vectors.encode, model, read, device)
    sums = (read.starts[-1], network_of(sizes).forward(read.lengths).sum())
    yield from measured(device, "encoding", *sums, (ours, theirs), sizes.repeats, faster=ENCODING)


# --- the command ----------------------------------------------------------------------------------

PARTS = {"parity": parity, "search": searching, "speed": speed}


def attempt(name: str, step: Callable[[], Iterator[Row]]) -> Iterator[Row]:
    """Yield the rows of a step; a missing package or an error becomes a row."""
    try:
        yield from step()
    except ModuleNotFoundError as missing:
        yield row(name, note=f"not here: {missing.name}")
    except Exception as failure:  # noqa: BLE001 (whatever it is, the next step must run)
        # the frames themselves would keep tensors
        place = traceback.extract_tb(failure.__traceback__)[-1]
        said = f"{type(failure).__name__}: {' '.join(str(failure).split())[:300]}"
        where = f"({Path(place.filename).name}, line {place.lineno})"
        yield row(name, passed=False, note=f"{said} {where}")
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def main() -> None:
    """Run the parts one after the other, and add their rows to the results."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    given = parser.parse_args()
    given.output.mkdir(parents=True, exist_ok=True)
    device = setup.set_up(torch.get_num_threads())
    sizes = PAPER if device.type == "cuda" else TOY
    card = torch.cuda.get_device_name() if device.type == "cuda" else "no GPU"
    versions = {"torch": torch.__version__, "cuda": torch.version.cuda, "gpu": card}
    failed = 0
    for part in given.parts:
        for name, step in PARTS[part](device, sizes):
            for found in attempt(name, step):
                failed += found["passed"] is False
                forms.record(given.output / "results.jsonl", [{"part": part} | found | versions])
                print(part, *(cell for cell in found.values() if cell != ""), flush=True)
    sys.exit(f"{failed} checks failed" if failed else 0)


if __name__ == "__main__":
    main()
