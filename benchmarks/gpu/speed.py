"""Tokens a second, the share of the device's peak (MFU) and memory, beside what others would run, in one process.

A step is the trainers' own, with dropout, masking and packing on the host, clipping and AdamW. Tokens are real ones.
Operations are those of the plan (`cdmae.plan.flops`), which counts the last layer whole, though ours is computed at the
rows that a loss reads. Gradient caching computes most of a forward pass twice; MFU counts it once. Others compute in
bfloat16, too. The peak is the dense one of the device's name in `cdmae.plan.machine`; for a CPU that assumed of a core.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace

import numpy as np
import torch
from torch import nn

from benchmarks.gpu.results import Row, Run, attempt
from cdmae.plan import flops, machine
from cdmae.training import setup

PRETRAINING, FINETUNING, ENCODING = 0.45, 0.35, 2.0  # targets: MFU, MFU, times sentence-transformers
MOST = 3  # steps that are timed of inference and of others, which take long


def rows(run: Run) -> Iterator[Row]:
    """Measure what takes most of the paper's hours first."""
    from benchmarks import finetuning

    yield from attempt(run, "pre-training", _pretraining)
    for taught in (False, True):
        yield from attempt(run, "fine-tuning", lambda run, taught=taught: _finetuning(run, taught=taught))
    if run.group.size > 1:  # what follows is one process's
        return
    network = finetuning.network(run.sizes.network).to(run.device)
    sequences = finetuning.batch(run.sizes.network, 1, run.sizes.encoded).sequences
    sequences = sequences.take(np.arange(1, len(sequences)))
    yield from attempt(run, "encoding", lambda run: _encoding(run, network, sequences))
    yield from attempt(run, "reranking", _reranking)
    for objective in ("mae", "retromae"):
        yield from attempt(run, f"padded {objective}", lambda run, o=objective: _padded_pretraining(run, o))
    yield from attempt(run, "sentence-transformers' training", _padded_finetuning)


def measured(
    run: Run, name: str, step: Callable[[], object], tokens: int, operations: float, target: float = 0.0, note: str = ""
) -> Iterator[Row]:
    """Time a step; yield its tokens a second, its share of the peak and the memory."""
    if run.on_gpu:
        torch.cuda.reset_peak_memory_stats()
    taken, number = _seconds(run, step, run.sizes.repeats), run.group.size
    yield Row(f"{name}: speed", tokens / taken, "tokens/s", note=f"{taken:.4g} s a step of {tokens:,} tokens{note}")
    if peak := _peak(run):
        share = operations / taken / (peak * number)
        passed = share >= target if target and run.on_gpu else None
        yield Row(f"{name}: MFU", 100 * share, "%", f"at least {100 * target:.0f} %" if target else "", passed)
    gigabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    if run.on_gpu:
        gigabytes = torch.cuda.max_memory_allocated() / 2**30
    yield Row(f"{name}: memory", gigabytes, "GB")


def _seconds(run: Run, step: Callable[[], object], most: int = MOST) -> float:
    """Return the median of `most` steps, after one that warms up; of fewer where time ends."""
    wait, taken = torch.cuda.synchronize if run.on_gpu else lambda: None, []
    step()
    while len(taken) < min(most, run.sizes.repeats):
        if taken and run.group.any(time.monotonic() > run.deadline):
            break
        wait()
        begun = time.perf_counter()
        step()
        wait()
        taken.append(time.perf_counter() - begun)
    return float(np.median(taken))


def _peak(run: Run) -> float:
    if not run.on_gpu:
        return machine.CORE * torch.get_num_threads()
    name = torch.cuda.get_device_name().lower().replace(" ", "")
    return next((peak for card, peak in machine.PEAK.items() if card in name), 0.0)


def _updating(network: nn.Module, learn: Callable[[], object]) -> Callable[[], None]:
    """Return a step of `learn`, clipping and AdamW."""
    adam = setup.adamw(network.parameters(), 0.01)
    setup.set_rate(adam, 1e-5)

    def step() -> None:
        learn()
        setup.clip(network.parameters(), 1.0)
        adam.step()
        adam.zero_grad()

    return step


# --- pre-training ----------------------------------------------------------------------------------------------------


def _pretraining(run: Run) -> Iterator[Row]:
    from benchmarks import pretraining
    from cdmae.pretraining import trainer

    network, given = _objective(run, "mae", run.sizes.batch)
    network.model.config.hidden_dropout_prob = 0.1  # BERT
    steps, settings = enumerate(pretraining.reader(given).steps(0, 1000, ahead=run.on_gpu)), pretraining.settings("mae")

    def learn() -> None:
        number, batch = next(steps)
        trainer.learn(network, batch, settings, run.group, seed=1, step=number)

    lengths = np.diff(pretraining.step(given).sides["encoder"].inputs.starts)
    # what the plan asks a collection for: the tokens of its texts
    operations = flops.passage(run.sizes.plan, settings, SimpleNamespace(tokens=lambda _: lengths)).sum()
    step, micro = _updating(network, learn), trainer.micro_batch(network.model.config, 2, run.device)
    note = f"; micro-batches of {micro:,} rows"
    yield from measured(run, "pre-training", step, lengths.sum(), operations, PRETRAINING, note)
    yield from _kernels(run, step)


def _objective(run: Run, name: str, batch: int) -> tuple[nn.Module, argparse.Namespace]:
    """Return an objective on the device, without dropout, and what its reader takes."""
    from benchmarks import pretraining

    sizes = run.sizes
    given = argparse.Namespace(size=sizes.network, vocabulary=sizes.vocabulary, length=sizes.length, batch=batch)
    given.objective = name
    return pretraining.networks(given)[0].to(run.device), given


def _kernels(run: Run, step: Callable[[], object]) -> Iterator[Row]:
    """Say where the time of a step goes: the longest kernels."""
    kind = torch.profiler.ProfilerActivity.CUDA if run.on_gpu else torch.profiler.ProfilerActivity.CPU
    with torch.profiler.profile(activities=[kind]) as profile:
        step()
    events = [(e.self_device_time_total if run.on_gpu else e.self_cpu_time_total, e) for e in profile.key_averages()]
    events = sorted((each for each in events if each[0]), key=lambda each: -each[0])
    total = sum(taken for taken, _ in events)
    for taken, event in events[:8]:
        yield Row(f"pre-training, kernel {event.key[:60]}", 100 * taken / total, "%", note=f"{event.count} times")


def _padded_pretraining(run: Run, name: str) -> Iterator[Row]:
    """Compare with the padded form of an objective, as RetroMAE's authors compute it, on a batch that fits."""
    from benchmarks import pretraining
    from benchmarks.naive import Naive
    from cdmae.pretraining import trainer

    network, given = _objective(run, name, run.sizes.padded)
    batch, settings = pretraining.step(given), pretraining.settings(name)
    naive, tokens = Naive(name, network), int(batch.sides["encoder"].inputs.starts[-1])

    def padded() -> None:
        with torch.device(run.device), setup.autocast("bf16", run.device):
            loss = naive(batch)
        loss.backward()

    ours = _seconds(run, _updating(network, lambda: trainer.learn(network, batch, settings, run.group, seed=1, step=0)))
    theirs = _seconds(run, _updating(network, padded))
    yield _beside(f"{name}, padded as its authors compute it", tokens, ours, theirs)


def _beside(name: str, tokens: int, ours: float, theirs: float, target: float = 0.0, *, on_gpu: bool = False) -> Row:
    """Return what another form reaches; target: times faster that ours has to be."""
    passed = theirs / ours >= target if target and on_gpu else None
    note, goal = f"ours {tokens / ours:,.0f}, {theirs / ours:.2f} times", f"ours {target:g} times" if target else ""
    return Row(name, tokens / theirs, "tokens/s", goal, passed, note)


# --- fine-tuning -----------------------------------------------------------------------------------------------------


def _finetuning(run: Run, *, taught: bool) -> Iterator[Row]:
    from dataclasses import replace

    from benchmarks import finetuning
    from cdmae.config.schema import Stage
    from cdmae.finetuning import retriever

    queries, group = run.sizes.groups[taught]
    network = finetuning.network(run.sizes.network).to(run.device)
    network.config.hidden_dropout_prob = 0.1
    batch = finetuning.batch(run.sizes.network, queries, group)
    batch = replace(batch, excluded=np.zeros((queries, queries * group), bool))
    if taught:
        batch = replace(batch, teacher=np.random.default_rng(1).standard_normal((queries, group), np.float32))
    stage = Stage(kind="retriever", collection="", chunk=run.sizes.chunk, passage_length=144, temperature=1.0)
    step = _updating(network, lambda: retriever.learn(network, batch, stage, run.group, seed=1, step=0))
    operations = flops.TRAINED * run.sizes.plan.forward(batch.sequences.lengths).sum()
    name = f"fine-tuning, {queries} x {group}{' with a teacher' * taught}"
    yield from measured(run, name, step, int(batch.sequences.starts[-1]), operations, FINETUNING)


def _padded_finetuning(run: Run) -> Iterator[Row]:
    """Compare with the loss that sentence-transformers' trainer computes, and with padded chunks."""
    from benchmarks import finetuning
    from cdmae.config.schema import Stage
    from cdmae.finetuning import retriever

    network = finetuning.network(run.sizes.network).to(run.device)
    batch = finetuning.batch(run.sizes.network, *run.sizes.groups[0])
    tokens, chunk = int(batch.sequences.starts[-1]), run.sizes.chunk
    stage = Stage(kind="retriever", collection="", chunk=chunk, passage_length=144, temperature=1.0, precision="bf16")
    learn = lambda: retriever.learn(network, batch, stage, run.group, seed=1, step=0)  # noqa: E731
    ours = _seconds(run, _updating(network, learn))
    for form in ("sentence_transformers", "padded_cached"):

        def other(run: Run, form: str = form) -> Iterator[Row]:
            def padded() -> None:
                with torch.device(run.device), setup.autocast("bf16", run.device):
                    finetuning.step(form, network, batch, chunk, 144)

            yield _beside(finetuning.FORMS[form], tokens, ours, _seconds(run, _updating(network, padded)))

        yield from attempt(run, f"fine-tuning, {finetuning.FORMS[form]}", other)


# --- inference -------------------------------------------------------------------------------------------------------


def _encoding(run: Run, network: nn.Module, sequences: object) -> Iterator[Row]:
    """Measure ours, then transformers by its kinds of attention, then sentence-transformers, which tokenises, too."""
    from cdmae.models.checkpoint import Model
    from cdmae.retrieval import vectors

    model, tokens = Model("retriever", network, None, {}, "bf16"), int(sequences.starts[-1])
    operations = run.sizes.plan.forward(sequences.lengths).sum()
    ours = lambda: vectors.encode(model, sequences, run.device)  # noqa: E731
    yield from measured(run, "encoding", ours, tokens, operations)
    usual = _seconds(run, ours)
    for kind in ("eager", "sdpa", "flash_attention_2"):

        def other(run: Run, kind: str = kind) -> Iterator[Row]:
            if kind == "flash_attention_2":
                import flash_attn  # noqa: F401 (or transformers asks the hub)
            network.set_attn_implementation(kind)
            theirs = _seconds(run, lambda: _forward(run, network, sequences))
            yield _beside(f"encoding by transformers, sorted, {kind}", tokens, usual, theirs)

        yield from attempt(run, f"encoding by transformers, {kind}", other)
    yield from attempt(run, "sentence-transformers", lambda run: _sentences(run, network, sequences, usual))


@torch.inference_mode()
def _forward(run: Run, network: nn.Module, sequences: object) -> None:
    """Read padded batches, sorted by length, and bring what they give to the host."""
    from benchmarks.finetuning import padded

    order = np.argsort(-sequences.lengths, kind="stable")
    with torch.device(run.device), setup.autocast("bf16", run.device):
        for begin in range(0, len(order), run.sizes.peer):
            states = network(**padded(sequences, order[begin : begin + run.sizes.peer]))
            (states.logits if "logits" in states else states.last_hidden_state[:, 0]).float().cpu()


def _sentences(run: Run, network: nn.Module, sequences: object, ours: float) -> Iterator[Row]:
    """Let sentence-transformers encode the same word-pieces, spelt so that its tokenizer finds them."""
    from sentence_transformers import SentenceTransformer
    from transformers import BertTokenizer

    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{number}" for number in range(run.sizes.vocabulary))]
    spelt = np.array(pieces, dtype=object)[sequences.ids]
    texts = [" ".join(text[1:-1]) for text in np.split(spelt, sequences.starts[1:-1])]
    with tempfile.TemporaryDirectory() as folder:
        network.save_pretrained(folder)
        BertTokenizer(vocab={piece: number for number, piece in enumerate(pieces)}).save_pretrained(folder)
        peer = SentenceTransformer(folder, device=str(run.device))
    peer.max_seq_length = 144
    peer = peer.to(torch.bfloat16) if run.on_gpu else peer
    for size in (32, run.sizes.peer):  # its default, and a large one
        theirs = _seconds(run, lambda size=size: peer.encode(texts, batch_size=size, show_progress_bar=False))
        name, tokens = f"encoding by sentence-transformers, batches of {size}", int(sequences.starts[-1])
        yield _beside(name, tokens, ours, theirs, ENCODING, on_gpu=run.on_gpu)


def _reranking(run: Run) -> Iterator[Row]:
    from benchmarks import finetuning
    from cdmae.finetuning import reranker
    from cdmae.retrieval import vectors

    network = finetuning.cross_encoder(run.sizes.network).to(run.device).eval()
    pairs, budget = finetuning.pairs(run.sizes.network, run.sizes.encoded), vectors.BUDGET[run.device.type]
    ours = lambda: reranker.score_all(network, pairs, "bf16", budget, run.device)  # noqa: E731
    tokens, operations = int(pairs.starts[-1]), run.sizes.plan.forward(pairs.lengths).sum()
    yield from measured(run, "reranking", ours, tokens, operations)
    theirs = _seconds(run, lambda: _forward(run, network, pairs))
    yield _beside("reranking by transformers, sorted, sdpa", tokens, _seconds(run, ours), theirs)
