"""Check and measure the GPU code in ten minutes, on a machine with one NVIDIA GPU.

    python -m benchmarks.gpu --output FOLDER                     everything
    python -m benchmarks.gpu --output FOLDER --parts parity      one part

The machine needs this checkout, a GPU of Ampere or newer, and the packages of `envs/gpu.yaml`, but
no network and no `./run`. Without a GPU the command runs toy sizes. Every row is added to
``FOLDER/results.jsonl`` at once. A step that fails is a row, and the next one runs. Exits with 1 if
a check fails.

parity   loss and gradient compared with float32 on the CPU: attention, every objective, a
         retriever's and a reranker's training; relative errors. In float32, with TF32 off, the
         error is at most 1e-4, below that of TF32. In bfloat16, twice the error of bfloat16 on the
         CPU is allowed, because kernels round at other positions (four times for objectives that
         choose by a draw or by a maximum, where nearly equal numbers may swap their order), or 4e-3
         if that is more, the error of a single product.
search   exact search on the GPU compared with the CPU, bit by bit.
speed    a step of pre-training (BERT base) and of fine-tuning, and encoding, next to transformers'
         modules with SDPA on sorted batches. MFU: the plan's operations (`cdmae.plan.plan`) on
         real tokens, divided by the device's dense peak in bfloat16.
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

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks import finetuning, forms, pretraining
from cdmae.config.objectives import AnyEncoder
from cdmae.config.stages import Dense, Reranker
from cdmae.fields import kinds_of, tags
from cdmae.finetuning.reranker import Batch, RerankerTask
from cdmae.models import attention, packed
from cdmae.models.checkpoint import Model
from cdmae.plan import machine
from cdmae.plan.plan import TRAINED, Network, passage_cost
from cdmae.retrieval import vectors
from cdmae.retrieval.search import search
from cdmae.training import setup
from cdmae.training.ranks import Ranks

CPU = torch.device("cpu")
PARTS = ("parity", "search", "speed")
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
# dense, in mixed precision; the plan's H100 is the SXM
PEAK = {"h100pcie": 756e12, "h100nvl": 835e12}
PEAK |= machine.PEAK
Parts = tuple[Tensor, ...]
# In a precision, shared by processes: adds the gradient, returns the loss
Learn = Callable[[str, Ranks], Tensor]
Row = dict[str, object]
Rows = Iterator[Row]
Steps = dict[str, Callable[[], Rows]]


PAPER = {  # sizes on a GPU
    "network": "base",
    "vocabulary": 30522,
    "batch": 2048,  # passages of a pre-training step
    "length": 150,
    "group": (64, 32),  # queries x passages
    "chunk": 768,  # passages computed together
    "encoded": 1 << 14,
    "peer": 256,  # passages in a peer's batch
    "found": 500_000,  # passages that are searched
    "repeats": 5,
}
TOY = {"network": "tiny", "vocabulary": 4096, "batch": 8, "length": 32, "group": (3, 4)}
TOY |= {"chunk": 8, "encoded": 40, "peer": 16, "found": 500, "repeats": 1}


def row(name: str, value: float | str = "", **more: object) -> Row:
    """Make a row: a value or a word; more: unit, target, note, and whether it has `passed`."""
    if not isinstance(value, str):
        value = float(value) if math.isfinite(value) else str(float(value))
    return {"name": name, "value": value, **more}


def network_of(sizes: SimpleNamespace) -> Network:
    """Return the network's dimensions, in the form that `cdmae.plan` counts."""
    layers, width, heads = pretraining.SIZES[sizes.network]
    return Network(layers, width, 4 * width, sizes.vocabulary, heads)


# --- parity ---------------------------------------------------------------------------------------


def compared(
    name: str, compute: Callable[[torch.device, str], Parts], device: torch.device
) -> Rows:
    """Compare what is computed on a device, in both precisions, with float32 on the CPU."""
    reference = compute(CPU, "fp32")
    own = error(compute(CPU, "bf16"), reference)
    allowed = {"fp32": EXACT, "bf16": max(LEAST, TIMES.get(name, 2.0) * own)}
    for precision, most in allowed.items():
        value = error(compute(device, precision), reference)
        note = f"bf16 on the CPU: {own:.1e}"
        yield row(f"{name}, {precision}", value, most=most, passed=value <= most, note=note)


def error(computed: Parts, reference: Parts) -> float:
    """Return the largest relative error of some tensors; NaN if a tensor contains NaN."""
    pairs = zip(computed, reference, strict=True)
    errors = [(one - other).norm() / other.norm().clamp_min(1e-30) for one, other in pairs]
    return float(torch.stack(errors).max())


def attended(size: int, chosen: np.ndarray | None, device: torch.device, precision: str) -> Parts:
    """Return attention's output and gradients without padding, of inputs that bfloat16 can hold."""
    heads = 3
    kind = torch.bfloat16 if precision == "bf16" else torch.float32
    starts = np.cumsum((0, *LENGTHS))
    of = packed.pack(packed.Ragged(np.zeros(starts[-1], np.int64), starts), device)
    to = of if chosen is None else packed.select(chosen, starts, device)
    draw = torch.Generator().manual_seed(1)
    inputs = []
    for layout in (to, of, of, to):
        states = torch.zeros(layout.size, heads * size)
        states[: len(layout.cells)] = torch.randn(len(layout.cells), heads * size, generator=draw)
        inputs.append(states.to(torch.bfloat16).to(kind).to(device))
    query, key, value = (states.requires_grad_() for states in inputs[:3])
    with setup.autocast(precision, device):
        grids = (attention.Grid(to, heads), attention.Grid(of, heads))
        out = attention.attend(query, key, value, *grids)
    found = (out, *torch.autograd.grad(out, (query, key, value), inputs[3]))
    pairs = zip(found, (to, to, of, of), strict=True)
    return tuple(states[: len(layout.cells)].detach().float().cpu() for states, layout in pairs)


def learnt(network: nn.Module, learn: Learn, device: torch.device, precision: str) -> Parts:
    """Return the loss of a step on a device, and its gradient."""
    network.zero_grad()
    network.to(device)
    loss = learn(precision, Ranks(device=device)).detach().cpu()
    trained = [weight for weight in network.parameters() if weight.grad is not None]
    return loss, torch.cat([weight.grad.cpu().flatten() for weight in trained])


def pretraining_step(name: str, size: str = "tiny") -> tuple[nn.Module, Learn]:
    """Return a network with an objective, and a step of its pre-training."""
    options = argparse.Namespace(size=size, vocabulary=1000, length=64, batch=12, objective=name)
    network = pretraining.networks(options)[0]
    settings = pretraining.settings(name)
    batch = pretraining.step(options)

    def learn(precision: str, group: Ranks) -> Tensor:
        network.settings = replace(settings, precision=precision)
        training = pretraining.task(network, options, group)
        training.rows = 200  # several micro-batches
        return training.learn(batch, 0)["loss"]

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
        return finetuning.task(network, chosen, group).learn(batch, 0)["loss"]

    return network, learn


def reranker_step() -> tuple[nn.Module, Learn]:
    """Return a cross-encoder, and a step of its training on all pairs."""
    # without a choice of the best pairs
    rest = {"forward_factor": 1, "chunk": 8, "max_length": 144}
    stage = Reranker(collection="c", group=4, rdrop=1.0, **rest)
    network = finetuning.cross_encoder("tiny")
    batch = Batch(finetuning.pairs("tiny", 24))

    def learn(precision: str, group: Ranks) -> Tensor:
        chosen = replace(stage, precision=precision)
        model = Model("reranker", network, None, {"max_length": 144}, precision)
        return RerankerTask("tiny", model, None, chosen, 1, group).learn(batch, 0)["loss"]

    return network, learn


# --- search ---------------------------------------------------------------------------------------


def _search(device: torch.device, sizes: SimpleNamespace) -> Rows:
    draw = np.random.default_rng(1)
    depth = min(1000, sizes.found // 50)
    passages = draw.standard_normal((sizes.found, network_of(sizes).width), np.float32)
    passages[-sizes.found // 10 :] = passages[: sizes.found // 10]  # ties
    queries = draw.standard_normal((200, network_of(sizes).width), np.float32)
    runs = {}
    for place in dict.fromkeys(("cpu", str(device))):
        begun = time.perf_counter()
        threads = torch.get_num_threads()
        runs[place] = search(queries, [passages], depth, threads=threads, device=place)
        seconds = time.perf_counter() - begun
        yield row(f"search on {place}", len(queries) / seconds, unit="queries/s")
    reference = runs.pop("cpu")
    for place, run in runs.items():
        same = np.array_equal(reference.passages, run.passages)
        same = same and np.array_equal(reference.scores, run.scores)
        yield row(f"the run of {place} is the CPU's, bit by bit", str(same), passed=same)


# --- speed ----------------------------------------------------------------------------------------


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
) -> Rows:
    """Measure our step and the peer's: tokens per second, share of the peak, and speed-up.

    The card's name decides about its peak.
    """
    ours, peer = (seconds_of(device, step, repeats) for step in steps)
    yield row(f"{name}: speed", tokens / ours, unit="tokens/s", note=f"{ours:.4g} s a step")
    card = torch.cuda.get_device_name() if device.type == "cuda" else "no GPU"
    words = card.lower().replace(" ", "")
    peak = next((peak for part, peak in PEAK.items() if part in words), math.nan)
    rate = operations / ours
    yield row(f"{name}: MFU", rate / peak, note=f"{rate / 1e12:.4g} TFLOP/s, {card}")
    yield row(f"{name}: times as fast as transformers, sorted", peer / ours)
    if device.type == "cuda":
        yield row(f"{name}: memory", torch.cuda.max_memory_allocated() / 2**30, unit="GB")


def _pretraining(device: torch.device, sizes: SimpleNamespace) -> Rows:
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
    operations = passage_cost(network_of(sizes), settings, corpus).sum()
    training = pretraining.task(network, options, Ranks(device=device))
    ours = partial(training.learn, batch, 0)
    theirs = partial(peer.learn, batch, sizes.peer, device, "bf16")
    sums = (counts.sum(), operations, (ours, theirs), sizes.repeats)
    yield from measured(device, "pre-training", *sums)


def _finetuning(device: torch.device, sizes: SimpleNamespace) -> Rows:
    network = finetuning.network(sizes.network).to(device)
    batch = finetuning.batch(sizes.network, *sizes.group)
    stage = Dense(collection="c", passage_length=144, temperature=1.0, chunk=sizes.chunk)
    group = Ranks(device=device)
    ours = partial(finetuning.task(network, stage, group).learn, batch, 0)

    def theirs() -> None:
        with torch.device(device), setup.autocast("bf16", device):
            finetuning.sorted_step(network, batch, sizes.peer)

    operations = TRAINED * network_of(sizes).forward(batch.sequences.lengths).sum()
    sums = (batch.sequences.starts[-1], operations, (ours, theirs), sizes.repeats)
    yield from measured(device, "fine-tuning", *sums)


def _encoding(device: torch.device, sizes: SimpleNamespace) -> Rows:
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
    yield from measured(device, "encoding", *sums, (ours, theirs), sizes.repeats)


# --- the command ----------------------------------------------------------------------------------


def all_steps(device: torch.device, sizes: SimpleNamespace) -> dict[str, Steps]:
    """Return the steps of each part by name, those that need least first."""
    # the packed kernel takes heads of 64 and 128
    computed = {
        f"attention, heads of {size}, {case}": partial(attended, size, chosen)
        for size in (64, 128, 26)
        for case, chosen in CHOSEN.items()
    }
    objectives = [tags(kind)["objective"] for kind in kinds_of(AnyEncoder)]
    training = {name: partial(pretraining_step, name) for name in objectives if name != "none"}
    training |= {"retriever, taught": retriever_step, "reranker, R-Drop": reranker_step}
    computed |= {name: partial(learnt, *step()) for name, step in training.items()}
    parity = {name: partial(compared, name, work, device) for name, work in computed.items()}
    speed = {
        "pre-training": partial(_pretraining, device, sizes),
        "fine-tuning": partial(_finetuning, device, sizes),
        "encoding": partial(_encoding, device, sizes),
    }
    return {"parity": parity, "search": {"search": partial(_search, device, sizes)}, "speed": speed}


def attempt(name: str, step: Callable[[], Rows]) -> Rows:
    """Yield the rows of a step; an error becomes a row."""
    try:
        yield from step()
    except Exception as failure:  # noqa: BLE001 (whatever it is, the next step must run)
        traceback.print_exc()
        yield row(name, passed=False, note=repr(failure))
    if torch.cuda.is_available():
        torch.cuda.empty_cache()


def main() -> None:
    """Run the parts one after the other, and add their rows to the results."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    given = parser.parse_args()
    given.output.mkdir(parents=True, exist_ok=True)
    device = setup.set_up(torch.get_num_threads())
    sizes = SimpleNamespace(**(PAPER if device.type == "cuda" else TOY))
    card = torch.cuda.get_device_name() if device.type == "cuda" else "no GPU"
    versions = {"torch": torch.__version__, "cuda": torch.version.cuda, "gpu": card}
    failed = 0
    steps = all_steps(device, sizes)
    for part in given.parts:
        for name, step in steps[part].items():
            for found in attempt(name, step):
                failed += found.get("passed") is False
                forms.record(given.output / "results.jsonl", [{"part": part} | found | versions])
                print(part, *found.values(), flush=True)
    sys.exit(f"{failed} checks failed" if failed else 0)


if __name__ == "__main__":
    main()
