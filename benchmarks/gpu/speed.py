"""Measure tokens per second, the share of the device's peak (MFU) and memory, next to peers.

A step is the trainers' own, with dropout, masking and packing on the host, clipping and AdamW. Only
real tokens count. Operations are counted as in the plan (`cdmae.plan.flops`), which counts the
whole last layer, although ours computes it only at the rows that a loss reads. Gradient caching
computes most of a forward pass twice; MFU counts it once. Peers also compute in bfloat16. The peak
is the device's speed without sparsity, by the name in the device's row; for a CPU, it is an assumed
speed per core.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import torch
from torch import nn
from torch.profiler import ProfilerActivity

from benchmarks import finetuning, pretraining
from benchmarks.gpu.results import Row
from benchmarks.gpu.steps import Run, attempt
from cdmae.config.heads import Dense
from cdmae.models.ragged import Ragged
from cdmae.plan import flops, machine
from cdmae.training import setup
from cdmae.training.loop import add_up
from cdmae.training.ranks import Ranks

PRETRAINING, FINETUNING, ENCODING = (
    0.45,
    0.35,
    2.0,
)  # targets: MFU, MFU, times sentence-transformers
LONGEST = 10.0  # seconds after which a step is not timed again
# in mixed precision; the plan's H100 is the SXM
PEAK = {"h100pcie": 756e12, "h100nvl": 835e12}
PEAK |= machine.PEAK
ALONE = Ranks()
STAGE = Dense(collection="c", passage_length=144, temperature=1.0)


def rows(here: Run) -> Iterator[Row]:
    """Measure first the steps that take most of the paper's compute time."""
    yield from attempt(here, "pre-training", _pretraining)
    for taught in (False, True):
        yield from attempt(here, "fine-tuning", partial(_finetuning, taught=taught))
    if here.group.size > 1:  # what follows is one process's
        return
    yield from attempt(here, "encoding", _encoding)
    yield from attempt(here, "reranking", _reranking)
    yield from attempt(here, "pre-training by transformers", _sorted_pretraining)


def _measured(
    here: Run,
    name: str,
    step: Callable[[], object],
    tokens: int,
    operations: float,
    target: float = 0.0,
    note: str = "",
) -> Generator[Row, None, float]:
    """Time a step; yield tokens per second, share of the peak and memory; return seconds."""
    if here.on_gpu:
        torch.cuda.reset_peak_memory_stats()
    seconds = _seconds(here, step)
    yield Row(
        f"{name}: speed",
        tokens / seconds,
        "tokens/s",
        note=f"{seconds:.4g} s a step of {tokens:,} tokens{note}",
    )
    yield of_peak(here, name, operations / seconds / here.group.size, target)
    gigabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    yield Row(
        f"{name}: memory",
        torch.cuda.max_memory_allocated() / 2**30 if here.on_gpu else gigabytes,
        "GB",
    )
    return seconds


def of_peak(here: Run, name: str, rate: float, target: float) -> Row:
    """Return operations per second as a share of the device's peak; "" if the peak is unknown."""
    card = torch.cuda.get_device_name() if here.on_gpu else "assumed of the cores"
    peak: float | None = machine.CORE * torch.get_num_threads()
    if here.on_gpu:
        peak = next(
            (peak for part, peak in PEAK.items() if part in card.lower().replace(" ", "")), None
        )
    goal = f"at least {100 * target:.0f} %" if target else ""
    reached = f"{rate / 1e12:.4g}"
    if peak is None:
        return Row(
            f"{name}: MFU",
            "unknown",
            "",
            goal,
            None,
            f"{reached} TFLOP/s; no peak is known of {card}",
        )
    passed = rate / peak >= target if target and here.on_gpu else None
    return Row(
        f"{name}: MFU",
        100 * rate / peak,
        "%",
        goal,
        passed,
        f"{reached} of {peak / 1e12:.4g} TFLOP/s, {card}",
    )


def _seconds(here: Run, step: Callable[[], object]) -> float:
    """Return the median time of several steps after a warm-up step; slow steps run less often."""
    wait = torch.cuda.synchronize if here.on_gpu else lambda: None
    taken = []
    step()
    while len(taken) < here.sizes.repeats:
        if taken and here.group.any(sum(taken) > LONGEST or time.monotonic() > here.deadline):
            break
        wait()
        begun = time.perf_counter()
        step()
        wait()
        taken.append(time.perf_counter() - begun)
    return float(np.median(taken))


def _beside(
    here: Run, name: str, tokens: int, ours: float, step: Callable[[], object], target: float = 0.0
) -> Row:
    """Time another form; target: the required speed-up of ours over it."""
    theirs = _seconds(here, step)
    passed = theirs / ours >= target if target and here.on_gpu else None
    note = f"ours {tokens / ours:,.0f}, {theirs / ours:.2f} times"
    goal = f"ours {target:g} times" if target else ""
    return Row(name, tokens / theirs, "tokens/s", goal, passed, note)


def _updating(
    network: nn.Module, learn: Callable[[], object], group: Ranks = ALONE
) -> Callable[[], None]:
    """Return a step of `learn`, clipping and AdamW; group: the processes that share it."""
    adam = setup.adamw(network.parameters(), 0.01)
    setup.set_rate(adam, 1e-5)

    def step() -> None:
        learn()
        add_up(network.parameters(), {}, group)
        setup.clip(network.parameters(), 1.0)
        adam.step()
        adam.zero_grad()

    return step


# --- pre-training ---------------------------------------------------------------------------------


def _pretraining(here: Run) -> Iterator[Row]:
    from cdmae.pretraining import trainer

    network, options = _objective(here, "mae", here.sizes.batch)
    network.model.config.hidden_dropout_prob = 0.1  # BERT
    settings = pretraining.settings("mae")
    steps = enumerate(pretraining.reader(options).steps(0, 1000, ahead=here.on_gpu))

    def learn() -> None:
        number, batch = next(steps)
        trainer.learn(network, batch, settings, here.group, seed=1, step=number)

    lengths = np.diff(pretraining.step(options).sides["encoder"].inputs.starts)
    corpus = SimpleNamespace(tokens=lambda _: lengths)  # what the plan asks of one
    operations = flops.passage(here.sizes.plan, settings, corpus).sum()
    rows = trainer.micro_batch(network.model.config, settings, here.device)
    note = f"; micro-batches of {rows:,} rows"
    step = _updating(network, learn, here.group)
    seconds = yield from _measured(
        here, "pre-training", step, lengths.sum(), operations, PRETRAINING, note
    )
    yield from _shares(here, step, seconds)


def _objective(here: Run, name: str, batch: int) -> tuple[nn.Module, argparse.Namespace]:
    """Return an objective on the device, without dropout, and its reader's arguments."""
    sizes = here.sizes
    options = argparse.Namespace(
        size=sizes.network, vocabulary=sizes.vocabulary, length=sizes.length, batch=batch
    )
    options.objective = name
    return pretraining.networks(options)[0].to(here.device), options


def _shares(here: Run, step: Callable[[], object], seconds: float) -> Iterator[Row]:
    """Report the most expensive operations of a step, and the share of time the device is busy."""
    key = "self_device_time_total" if here.on_gpu else "self_cpu_time_total"
    with torch.profiler.profile(
        activities=[ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if here.on_gpu else [])]
    ) as profile:
        step()
    operators = [
        event
        for event in profile.key_averages()
        if event.device_type == torch.autograd.DeviceType.CPU
    ]
    operators.sort(key=lambda event: -getattr(event, key))
    total = max(1, sum(getattr(event, key) for event in operators))  # microseconds
    yield Row(
        "pre-training: the device works",
        total / 1e4 / seconds,
        "%",
        note="the rest it waits for the host",
    )
    for event in operators[:8]:
        share = 100 * getattr(event, key) / total
        yield Row(f"pre-training, {event.key[:60]}", share, "%", note=f"{event.count} times")


def _sorted_pretraining(here: Run) -> Iterator[Row]:
    """Compare with the simplest good form over transformers' modules, without dropout."""
    from benchmarks.naive import Sorted
    from cdmae.pretraining import trainer

    network, options = _objective(here, "mae", here.sizes.batch)
    batch = pretraining.step(options)
    settings = pretraining.settings("mae")
    peer = Sorted("mae", network)
    tokens = int(batch.sides["encoder"].inputs.starts[-1])
    learn = partial(trainer.learn, network, batch, settings, here.group, seed=1, step=0)
    ours = _seconds(here, _updating(network, learn, here.group))
    theirs = partial(peer.learn, batch, here.sizes.peer, here.device, "bf16")
    yield _beside(
        here, "pre-training by transformers, sorted", tokens, ours, _updating(network, theirs)
    )


# --- fine-tuning ----------------------------------------------------------------------------------


def _finetuning(here: Run, *, taught: bool) -> Iterator[Row]:
    from cdmae.finetuning import retriever
    from cdmae.finetuning.objectives import Objective

    queries, group = here.sizes.groups[taught]
    network = finetuning.network(here.sizes.network).to(here.device)
    network.config.hidden_dropout_prob = 0.1
    batch = finetuning.batch(here.sizes.network, queries, group)
    batch = replace(batch, excluded=np.zeros((queries, queries * group), bool))
    if taught:
        batch = replace(
            batch, teacher=np.random.default_rng(1).standard_normal((queries, group), np.float32)
        )
    stage = replace(STAGE, chunk=here.sizes.chunk)
    tokens = batch.sequences.starts[-1]
    learn = partial(retriever.learn, network, batch, Objective(stage), here.group, seed=1, step=0)
    step = _updating(network, learn, here.group)
    operations = flops.TRAINED * here.sizes.plan.forward(batch.sequences.lengths).sum()
    name = f"fine-tuning, {queries} x {group}{' with a teacher' * taught}"
    seconds = yield from _measured(here, name, step, tokens, operations, FINETUNING)

    def cached(here: Run) -> Iterator[Row]:
        """Compare with the loss that sentence-transformers' trainer computes, without dropout."""

        def learn() -> None:
            with torch.device(here.device), setup.autocast("bf16", here.device):
                finetuning.cached_step(network, batch, stage.chunk)

        yield _beside(
            here,
            "fine-tuning by CachedMultipleNegativesRankingLoss",
            tokens,
            seconds,
            _updating(network, learn),
        )

    if not taught and here.group.size == 1:
        yield from attempt(here, "sentence-transformers' training", cached)


# --- inference ------------------------------------------------------------------------------------


def _encoding(here: Run) -> Iterator[Row]:
    """Measure ours, transformers by kind of attention, and sentence-transformers."""
    from cdmae.models.checkpoint import Model
    from cdmae.retrieval import vectors

    network = finetuning.network(here.sizes.network).to(here.device)
    sequences = finetuning.batch(here.sizes.network, 1, here.sizes.encoded).sequences
    sequences = sequences.take(np.arange(1, len(sequences)))
    model = Model("retriever", network, None, {}, "bf16")
    tokens = int(sequences.starts[-1])
    operations = here.sizes.plan.forward(sequences.lengths).sum()
    encode = partial(vectors.encode, model, sequences, here.device)
    seconds = yield from _measured(here, "encoding", encode, tokens, operations)

    def by_transformers(here: Run, kind: str) -> Iterator[Row]:
        if kind == "flash_attention_2":
            import flash_attn  # noqa: F401 (or transformers asks the hub)
        network.set_attn_implementation(kind)
        name = f"encoding by transformers, sorted, {kind}"
        yield _beside(here, name, tokens, seconds, partial(_forward, here, network, sequences))

    for kind in ("sdpa", "flash_attention_2"):
        yield from attempt(
            here, f"encoding by transformers, {kind}", partial(by_transformers, kind=kind)
        )
    network.set_attn_implementation("sdpa")
    by_others = partial(_sentences, network=network, sequences=sequences, ours=seconds)
    yield from attempt(here, "encoding by sentence-transformers", by_others)


@torch.inference_mode()
def _forward(here: Run, network: nn.Module, sequences: Ragged) -> None:
    """Read padded batches, sorted by length, and copy the results to the host."""
    order = np.argsort(-sequences.lengths, kind="stable")
    with torch.device(here.device), setup.autocast("bf16", here.device):
        for begin in range(0, len(order), here.sizes.peer):
            states = network(**finetuning.padded(sequences, order[begin : begin + here.sizes.peer]))
            (states.logits if "logits" in states else states.last_hidden_state[:, 0]).float().cpu()


def _sentences(here: Run, network: nn.Module, sequences: Ragged, ours: float) -> Iterator[Row]:
    """Encode the same word-pieces with sentence-transformers, spelt for its tokenizer."""
    from sentence_transformers import SentenceTransformer
    from transformers import BertTokenizer

    pieces = [
        "[PAD]",
        "[UNK]",
        "[CLS]",
        "[SEP]",
        "[MASK]",
        *(f"w{number}" for number in range(here.sizes.vocabulary)),
    ]
    spelt = np.array(pieces, dtype=object)[sequences.values]
    texts = [" ".join(text[1:-1]) for text in np.split(spelt, sequences.starts[1:-1])]
    with tempfile.TemporaryDirectory() as folder:
        network.save_pretrained(folder)
        BertTokenizer(vocab={piece: number for number, piece in enumerate(pieces)}).save_pretrained(
            folder
        )
        peer = SentenceTransformer(folder, device=str(here.device))
    peer.max_seq_length = STAGE.passage_length
    peer = peer.to(torch.bfloat16) if here.on_gpu else peer
    for size in (32, here.sizes.peer):  # its default, and a large one
        name = f"encoding by sentence-transformers, batches of {size}"
        tokens = int(sequences.starts[-1])
        encode = partial(peer.encode, texts, batch_size=size, show_progress_bar=False)
        yield _beside(here, name, tokens, ours, encode, ENCODING)


def _reranking(here: Run) -> Iterator[Row]:
    from cdmae.finetuning import reranker
    from cdmae.retrieval import vectors

    network = finetuning.cross_encoder(here.sizes.network).to(here.device).eval()
    pairs = finetuning.pairs(here.sizes.network, here.sizes.encoded)
    budget = vectors.BUDGET[here.device.type]
    tokens = int(pairs.starts[-1])
    operations = here.sizes.plan.forward(pairs.lengths).sum()
    score = partial(reranker.score_all, network, pairs, "bf16", budget, here.device)
    seconds = yield from _measured(here, "reranking", score, tokens, operations)
    forward = partial(_forward, here, network, pairs)
    yield _beside(here, "reranking by transformers, sorted, sdpa", tokens, seconds, forward)
