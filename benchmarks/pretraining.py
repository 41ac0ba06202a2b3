"""Compare a pre-training step with the simplest good form of the same objective.

    python -m benchmarks.pretraining    an encoder of 4 x 256, V = 30,522: some minutes
    python -m benchmarks.pretraining --vocabulary 4096 --length 64   as in the default config
    python -m benchmarks.pretraining --size base --batch 8 --rounds 2    12 x 768: minutes on a CPU

The peer is `benchmarks.peer.Sorted`: transformers' modules with SDPA on padded chunks of similar
lengths, and the LM head at predicted positions only. Both forms of simlm have a frozen generator
with a third of the heads.

A step is forward, backward, clipping and AdamW (fused, for all), without dropout, on the same
passages and masks. Lengths follow MS MARCO, 76 word-pieces on average at 150. Fails unless all
forms have the same loss.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch import nn
from transformers import BertConfig, BertForMaskedLM, ElectraConfig, ElectraForMaskedLM

from benchmarks import forms
from benchmarks.peer import Sorted
from cdmae.arrays import write_array
from cdmae.config.encoders import Encoder
from cdmae.config.objectives import AnyEncoder
from cdmae.fields import kind_of, pick, rules_of
from cdmae.masking import Corpus
from cdmae.pretraining.batches import Step
from cdmae.pretraining.objectives import objective
from cdmae.pretraining.objectives._parts import Objective
from cdmae.pretraining.objectives.simlm import SimLm
from cdmae.pretraining.reader import Reader
from cdmae.pretraining.trainer import PretrainingTask
from cdmae.tokens.corpus import Tokens
from cdmae.tokens.vocabulary import Vocabulary
from cdmae.training import setup
from cdmae.training.ranks import Ranks
from cdmae.training.state import State

SIZES = {"tiny": (2, 128, 2), "small": (4, 256, 4), "base": (12, 768, 12)}  # layers, width, heads
FORMS = {
    "sorted": "transformers, sorted, SDPA",
    "sorted_bf16": "transformers, sorted, SDPA",
    "ours": "ours",
    "ours_bf16": "ours",
}
PUBLISHED = ("mae", "retromae", "simlm")  # the paper's objectives, and the peers' objectives


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
    importance = rng.normal(0, 6.4, starts[-1]).astype(np.float16)
    recipe = replace(settings(given.objective), batch=given.batch, max_length=given.length)
    kind = objective(given.objective)
    with tempfile.TemporaryDirectory() as folder:
        write_array(Path(folder, "values.npy"), importance)
        corpus = Corpus(tokens, vocabulary, estimate=folder)
        return kind.reader(recipe, kind.sides(recipe, "word"), corpus, seed=1)


def settings(name: str) -> Encoder:
    """Make an objective with the masks it is published with."""
    masking = {"mae": "importance", "master": "inverse_frequency"}.get(name, "whole_word")
    kind = kind_of(AnyEncoder, {"objective": name})
    given = {"start": "s", "collection": "c", "decoder_masking": masking}
    return kind(**pick(given, rules_of(kind)))


def networks(given: argparse.Namespace) -> tuple[nn.Module, Sorted]:
    """Return our network and the peer with the same weights, without dropout.

    The weights are random and the same in every process.
    """
    layers, width, heads = SIZES[given.size]
    sizes = {
        "vocab_size": given.vocabulary,
        "num_hidden_layers": layers,
        "attn_implementation": "sdpa",
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
            return ours, Sorted(given.objective, ours)
        narrow = max(1, heads // 3)
        third = {
            "hidden_size": 64 * narrow,
            "num_attention_heads": narrow,
            "intermediate_size": 256 * narrow,
        }
        generator = ElectraForMaskedLM(ElectraConfig(embedding_size=width, **third, **sizes)).eval()
        ours = SimLm(model, settings("simlm"), 1)
        ours.generator = generator.requires_grad_(False)
        ours.learns = False
        return ours, Sorted("simlm", ours, generator.requires_grad_(False))


def task(network: Objective, given: argparse.Namespace, group: Ranks) -> PretrainingTask:
    """Make the training of a network, without files."""
    return PretrainingTask(network, reader(given), State(Path(), "benchmark", group), seed=1)


def start(form: str, given: argparse.Namespace) -> Callable[[], float]:
    """Return a form's step, which returns its loss."""
    ours, peer = networks(given)
    network = peer if form.startswith("sorted") else ours
    adam = setup.adamw(network.parameters(), 0.01)
    for group in adam.param_groups:
        group["lr"] = 1e-5
    batch = step(given)
    precision = forms.precision(form)
    ours.settings = replace(ours.settings, precision=precision)
    training = task(ours, given, Ranks())

    def once() -> float:
        if network is peer:
            loss = peer.learn(batch, given.chunk, torch.device("cpu"), precision)
        else:
            loss = training.learn(batch, 0)["loss"]
        nn.utils.clip_grad_norm_(network.parameters(), 1.0, foreach=True)
        adam.step()
        adam.zero_grad()
        return float(loss)

    return once


def main() -> None:
    """Measure each objective's step next to its peer's, and print a table per objective."""
    parser = forms.parser(__doc__, vocabulary=30522, length=150, batch=32, chunk=8)
    parser.add_argument("--size", choices=SIZES, default="small")
    parser.add_argument("--objective", nargs="+", choices=PUBLISHED, default=PUBLISHED)
    given = parser.parse_args()
    for name in given.objective:
        one = argparse.Namespace(**{**vars(given), "objective": name})
        pieces = len(step(one).sides["encoder"].inputs.values) / given.batch
        work = (
            f"{given.size}: {SIZES[given.size]}, vocabulary {given.vocabulary:,}, "
            f"{given.batch} passages of {pieces:.0f} word-pieces, peers in chunks of {given.chunk}"
        )
        forms.compare(start, FORMS, one, f"pre-training step, {name}", work=work)


if __name__ == "__main__":
    main()
