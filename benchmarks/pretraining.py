"""Compare a pre-training step with the padded form of the same objective.

    python -m benchmarks.pretraining    an encoder of 4 x 256, V = 30,522: some minutes
    python -m benchmarks.pretraining --vocabulary 4096 --length 64   as in the default config
    python -m benchmarks.pretraining --size base --batch 8 --rounds 2    12 x 768: minutes on a CPU
    python -m benchmarks.pretraining --objective mae --size base --batch 2048 --forms ours
        on a GPU: its share of the peak
    python -m benchmarks.pretraining --objective master cotmae       other objectives

The padded forms are in `benchmarks.naive`, with eager attention and the LM head at every position,
as in ``src/pretrain/modeling.py`` of RetroMAE and ``src/models/rlm.py`` of SimLM. Both forms of
simlm have a frozen generator with a third of the heads. SimLM's own code is slower than the padded
form: it also samples where nothing is masked.

A step is forward, backward, clipping and AdamW (fused, for all). Every form runs in its own process
with the same settings of heap and threads, on the same weights, passages and masks, without
dropout. The forms take turns; the figures are medians over the rounds. Lengths follow MS MARCO, 76
word-pieces on average at 150. Fails unless ours has the loss of the padded form.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import time
from collections.abc import Iterable
from multiprocessing.connection import Connection

import numpy as np
import torch
from torch import nn
from transformers import BertConfig, BertForMaskedLM, ElectraConfig, ElectraForMaskedLM

from benchmarks.naive import Naive, Nonsense
from benchmarks.tables import table
from cdmae.config.encoders import Encoder
from cdmae.config.objectives import OBJECTIVES
from cdmae.describe import describe
from cdmae.fields import pick, rules_of
from cdmae.pretraining import trainer
from cdmae.pretraining.batches import Batch, Step
from cdmae.pretraining.objectives import objective, objectives
from cdmae.pretraining.objectives.simlm import SimLm
from cdmae.pretraining.reader import Reader
from cdmae.tokens.corpus import Tokens
from cdmae.tokens.vocabulary import Vocabulary
from cdmae.training import setup
from cdmae.training.ranks import Ranks

SIZES = {"tiny": (2, 128, 2), "small": (4, 256, 4), "base": (12, 768, 12)}  # layers, width, heads
FORMS = {"naive": "padded", "ours": "ours", "ours_bf16": "ours"}
PUBLISHED = ("mae", "retromae", "simlm")  # the paper's objectives, and the peers' objectives
NEAR = {
    "simlm": 1e-4
}  # of the loss: a draw at the edge of two word-pieces may fall on either; of the others 1e-5
PEAK = 989e12  # multiplications and additions per second of an H100 or H200 in bf16


def step(given: argparse.Namespace) -> Step:
    """Draw a global batch of random passages, masked on both sides."""
    return next(reader(given).steps(0, 1))


def reader(given: argparse.Namespace) -> Reader:
    """Make a collection of one batch of random passages, and read the steps of an objective."""
    rng = np.random.default_rng(1)
    mean = 76 * given.length / 150
    lengths = np.clip(
        np.exp(rng.normal(np.log(mean * 0.93), 0.38, given.batch)), 5, given.length - 2
    ).astype(int)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    special = np.arange(given.vocabulary) < 5
    tokens = Tokens(
        rng.integers(5, given.vocabulary, starts[-1]),
        starts,
        starts[:-1],
        rng.random(len(special)) < 0.8,
    )
    vocabulary = Vocabulary(
        len(special), 0, 2, 3, 4, special, np.flatnonzero(~special), tokens.word_starts
    )
    sides = objective(given.objective).sides(settings(given.objective), "word")
    values = rng.normal(0, 6.4, starts[-1]).astype(np.float16)
    known = dict.fromkeys(("importance", "inverse_frequency"), values)
    sizes = {"batch": given.batch, "max_length": given.length}
    spelling = Nonsense(vocabulary)
    return Reader(tokens, known, vocabulary, sides, **sizes, seed=1, spelling=spelling)


def settings(name: str) -> Encoder:
    """Make an objective with the masks it is published with."""
    masking = {"mae": "importance", "master": "inverse_frequency"}.get(name, "whole_word")
    kind = OBJECTIVES[name]
    given = {"start": "s", "collection": "c", "decoder_masking": masking}
    return kind(**pick(given, rules_of(kind)))


def networks(given: argparse.Namespace) -> tuple[nn.Module, Naive]:
    """Return our network and the padded form with the same weights, without dropout.

    The weights are random and the same in every process.
    """
    layers, width, heads = SIZES[given.size]
    sizes = {
        "vocab_size": given.vocabulary,
        "num_hidden_layers": layers,
        "attn_implementation": "eager",
    }
    config = BertConfig(
        hidden_size=width,
        num_attention_heads=heads,
        intermediate_size=4 * width,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        **sizes,
    )
    with torch.random.fork_rng():
        torch.manual_seed(1)
        model = BertForMaskedLM(config)
        if given.objective != "simlm":
            ours = objective(given.objective)(model, settings(given.objective), seed=1)
            return ours, Naive(given.objective, ours)
        narrow = max(1, heads // 3)
        third = {
            "hidden_size": 64 * narrow,
            "num_attention_heads": narrow,
            "intermediate_size": 256 * narrow,
        }
        generator = ElectraForMaskedLM(ElectraConfig(embedding_size=width, **third, **sizes)).eval()
        ours = SimLm(model, settings("simlm"), 1, generator)
        return ours, Naive("simlm", ours, generator.requires_grad_(False))


def work(form: str, given: argparse.Namespace, line: Connection) -> None:
    """Take a step at each request; answer with seconds, loss and memory in GB.

    The seconds are CPU time, on a GPU wall time.
    """
    device = setup.set_up(given.threads)
    if form == "naive":
        device = torch.device("cpu")
    (ours, naive) = networks(given)
    batch = step(given)
    trained = naive if form == "naive" else ours.to(device)
    adam = setup.adamw(trained.parameters(), 0.01)
    setup.set_rate(adam, 1e-5)
    rows = trainer.micro_batch(ours.model.config, ours.settings, device)
    clock = time.perf_counter if device.type == "cuda" else time.process_time
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    while line.recv():
        begun = clock()
        total = 0.0
        for part in [batch] if form == "naive" else parts(ours, batch, rows, device):
            with setup.autocast("bf16" if form == "ours_bf16" else "fp32", device):
                loss = trained(part)
            loss = loss[0] if isinstance(loss, tuple) else loss
            loss.backward()
            total += loss.detach()
        setup.clip(trained.parameters(), 1.0)
        adam.step()
        adam.zero_grad()
        loss = float(total)
        seconds = clock() - begun
        line.send(
            (seconds, loss, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 2**20)
        )


def parts(network: nn.Module, batch: Step, rows: int, device: torch.device) -> Iterable[Batch]:
    """Return the micro-batches of a step as the loop hands them to the network."""
    found = batch.batches(rows, device)
    if not hasattr(network, "prepare"):
        return found
    found = list(found)
    return network.prepare(found, [None] * len(found), Ranks())


def operations(given: argparse.Namespace, batch: Step) -> float:
    """Count the operations of a step of `mae`: three forward passes, without padding."""
    layers, width, _ = SIZES[given.size]
    starts = batch.sides["encoder"].inputs.starts
    rows = starts[-1]
    squares = (np.diff(starts) ** 2).sum()
    masked = {side: each.chosen.sum() for side, each in batch.sides.items()}
    whole = rows * 24 * width**2 + 4 * squares * width  # one layer everywhere
    body = (layers - 1 + 1) * whole  # of the decoder's two layers one is everywhere
    last = sum(20 * width**2 * masked[side] + 4 * width**2 * rows for side in masked)
    return 3 * float(body + last + sum(masked.values()) * 2 * width * (given.vocabulary + width))


def main() -> None:
    """Measure each objective's step next to its padded form, and print a table per objective."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument("--vocabulary", type=int, default=30522)
    parser.add_argument(
        "--length", type=int, default=150, help="word-pieces, [CLS] and [SEP] included"
    )
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--objective", nargs="+", choices=objectives(), default=PUBLISHED)
    parser.add_argument("--forms", nargs="+", choices=FORMS, default=tuple(FORMS))
    given = parser.parse_args()
    print(f"{describe()['processor']}; threads: {given.threads}")
    for name in given.objective:
        compare(argparse.Namespace(**{**vars(given), "objective": name}))


def compare(given: argparse.Namespace) -> None:
    """Measure the forms of one objective."""
    context = multiprocessing.get_context("spawn")
    lines = {}
    processes = []
    for form in given.forms:
        lines[form], other = context.Pipe()
        processes.append(context.Process(target=work, args=(form, given, other), daemon=True))
        processes[-1].start()
    taken: dict[str, list[tuple[float, float, float]]] = {form: [] for form in lines}
    for _ in range(given.rounds + 1):
        for form, line in lines.items():
            line.send(True)
            taken[form].append(line.recv())
    for line in lines.values():
        line.send(False)
    report(given, taken)


def report(given: argparse.Namespace, taken: dict[str, list[tuple[float, float, float]]]) -> None:
    """Print the table; the first step of a form warms up and gives the untrained loss."""
    batch = step(given)
    starts = batch.sides["encoder"].inputs.starts
    print(
        f"\n{given.objective}, {given.size}: {SIZES[given.size]}, vocabulary "
        f"{given.vocabulary:,}, {given.batch} "
        f"passages of {starts[-1] / given.batch:.0f} word-pieces on average, "
        f"the longest text {np.diff(starts).max()}\n"
    )
    seconds = {form: np.array([each[0] for each in steps[1:]]) for form, steps in taken.items()}
    work_done = operations(given, batch) if given.objective == "mae" else 0.0
    rows = []
    for form, of_rounds in seconds.items():
        usual = float(np.median(of_rounds))
        row = {
            "step": FORMS[form],
            "precision": "bf16" if form == "ours_bf16" else "float32",
            "cpu-ms": f"{1000 * usual:,.0f}",
            "passages/s": f"{given.batch / usual:,.1f}",
            "x padded": f"{np.median(seconds['naive'] / of_rounds):.1f}"
            if "naive" in seconds
            else "",
            "memory, GB": f"{taken[form][-1][2]:.2f}",
        }
        row["TFLOP/s"] = f"{work_done / usual / 1e12:.3f}" if form != "naive" and work_done else ""
        row["of peak"] = (
            f"{work_done / usual / PEAK:.0%}" if torch.cuda.is_available() and work_done else ""
        )
        rows.append({**row, "loss": f"{taken[form][0][1]:.6f}"})
    print(table(rows))
    if {"naive", "ours"} <= taken.keys():
        one = taken["naive"][0][1]
        other = taken["ours"][0][1]
        if abs(one - other) > NEAR.get(given.objective, 1e-5) * one:
            raise SystemExit(f"the loss of ours, {other}, is not that of the padded form, {one}")
        print(
            f"\nlosses of the padded form and ours differ by "
            f"{abs(one - other) / one:.1e} of their size"
        )


if __name__ == "__main__":
    main()
