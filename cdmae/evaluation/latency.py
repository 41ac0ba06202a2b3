"""Measure the latency of masking on one thread, and its growth with the length.

This is the paper's table of masking latency: each method masks a passage of n word-pieces for the
decoder. MAE masks whole words at random; CDMAE by importance; RetroMAE separately for every
position. SimLM masks at least the encoder's masks, then samples every masked token of both sides
from a generator of ELECTRA-base's size. All rows are our code; one more row is RetroMAE's own
collator, in Python. The paper reports 0.4, 1.1, 11.6 and 0.4 ms on a CPU (2.8 ms for the generator
on a GPU), n = 150.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from transformers import BertConfig, BertForMaskedLM

from cdmae import masking
from cdmae.config.objectives import SimLm
from cdmae.masking import Corpus, Side
from cdmae.models import architectures
from cdmae.pretraining.objectives import simlm
from cdmae.pretraining.objectives.retromae import hide as hidden_positions
from cdmae.pretraining.reader import Reader
from cdmae.tokens.corpus import Tokens
from cdmae.tokens.vocabulary import Vocabulary

BATCH = 128  # passages masked together
LENGTH = 150
LENGTHS = (LENGTH, 512, 1024, 2048, 4096)
SLOW = {
    "RetroMAE, in Python": 512,
    "SimLM, generator": 512,
}  # the longest text for each slow method; longer texts would take seconds
SECONDS = 0.2  # of each measurement
V = 30522  # BERT's word-pieces; a fifth of ours continue a word
BASE = {"vocab_size": V, "num_hidden_layers": 12, "max_position_embeddings": 2 + max(LENGTHS)}
UNIFORM = Side("whole_word", 0.5)
AWARE = Side("importance", 0.5)


def timed(function: Callable[[], object], seconds: float) -> float:
    """Return the shortest wall time of many calls in milliseconds, after a warm-up call."""
    function()
    taken = []
    begun = time.perf_counter()
    while time.perf_counter() - begun < seconds or len(taken) < 3:
        start = time.perf_counter()
        function()
        taken.append(time.perf_counter() - start)
    return 1000 * min(taken)


def whole_word_mask(pieces: list[str], ratio: float, draw: random.Random) -> list[int]:
    """Mask whole words in random order up to the ratio, as BERT's collators did in Python."""
    words: list[list[int]] = []
    for place, piece in enumerate(pieces):
        if words and piece.startswith("##"):
            words[-1].append(place)
        else:
            words.append([place])
    draw.shuffle(words)
    budget = max(1, round(len(pieces) * ratio))
    chosen: set[int] = set()
    for word in words:
        if len(chosen) >= budget:
            break
        if len(chosen) + len(word) <= budget:
            chosen.update(word)
    return [int(place in chosen) for place in range(len(pieces))]


def retromae(batch: list[list[str]], draw: random.Random) -> list[torch.Tensor]:
    """Draw encoder masks and decoder attention matrices as RetroMAE's collator does."""
    found = []
    for pieces in batch:
        encoder = whole_word_mask(pieces, 0.3, draw)
        masks = [whole_word_mask(pieces, 0.5, draw) for _ in range(min(len(pieces), 128))]
        rows = []
        for place in range(len(pieces)):
            row = deepcopy(masks[draw.randint(0, len(masks) - 1)])
            row[place] = 1
            rows.append(row)
        found += [torch.tensor(encoder), 1 - torch.tensor(rows)]
    return found


@dataclass(frozen=True)
class Passages:
    """Passages of one length, padded for masking and as a reader's steps."""

    batch: masking.Batch
    reader: Reader
    vocabulary: Vocabulary


def passages(number: int, length: int) -> Passages:
    """Make random word-pieces of random importance."""
    rng = np.random.default_rng(0)
    ids = rng.integers(1000, V, number * length).astype(np.uint16)
    starts = np.arange(number + 1) * length
    special = np.arange(V) < 1000
    begins = np.arange(V) % 5 > 0
    vocabulary = Vocabulary(
        V, 0, 101, 102, 103, special, np.flatnonzero(~special).astype(np.int32), begins
    )
    tokens = Tokens(ids, starts, starts[:-1], begins)
    values = rng.normal(5, 6.4, len(ids)).astype(np.float16)
    decoder = replace(UNIFORM, beyond="encoder")
    sides = {"encoder": Side("whole_word", 0.3), "decoder": decoder}
    settings = SimLm(start="s", collection="c", batch=number, max_length=length + 2)
    reader = simlm.Sampled(settings, sides, Corpus(tokens, vocabulary), seed=1)
    batch = masking.read(tokens, np.arange(number), length, vocabulary, values)
    return Passages(batch, reader, vocabulary)


def mask(given: Passages, side: Side) -> object:
    """Make one mask per passage."""
    return masking.mask(given.batch, side, given.vocabulary, masking.key(1, "decoder", 0))


def hide(given: Passages) -> object:
    """Make a mask for every position."""
    return hidden_positions(given.batch, UNIFORM, masking.key(1, "decoder", 0))


def in_python(given: Passages) -> object:
    """Mask as RetroMAE's collator does."""
    begins = given.vocabulary.word_starts
    pieces = [["a" if begins[each] else "##a" for each in row] for row in given.batch.ids.tolist()]
    return retromae(pieces, random.Random(0))


def both_sides(given: Passages) -> object:
    """Make SimLM's masks; the decoder's mask includes the encoder's."""
    return given.reader.read(0, 1)


@torch.no_grad()
def sample(generator: BertForMaskedLM, given: Passages) -> object:
    """Draw SimLM's samples for both sides."""
    (batch,) = given.reader.read(0, 1)[0].batches(1 << 30, torch.device("cpu"))
    return [
        simlm.fill(generator.bert, architectures.head(generator), batch[side])
        for side in ("encoder", "decoder")
    ]


def measure() -> dict[str, Any]:
    """Return the milliseconds of every method: for a batch, and for one passage of each length."""
    torch.set_num_threads(1)
    generator = simlm.generator_of(BertConfig(**BASE), 1)
    methods: dict[str, Callable[[Passages], object]] = {
        "MAE": partial(mask, side=UNIFORM),
        "RetroMAE, in Python": in_python,
        "RetroMAE, ours": hide,
        "SimLM, masks": both_sides,
        "SimLM, generator": partial(sample, generator),
        "CDMAE": partial(mask, side=AWARE),
    }
    ones = {length: passages(1, length) for length in LENGTHS}
    growth = {
        name: {
            str(length): timed(partial(method, one), SECONDS)
            for length, one in ones.items()
            if length <= SLOW.get(name, length)
        }
        for name, method in methods.items()
    }
    many = passages(BATCH, LENGTH)
    batch = {
        name: growth[name][str(LENGTH)] * BATCH
        if name in SLOW
        else timed(partial(method, many), SECONDS)
        for name, method in methods.items()
    }
    return {"passages": BATCH, "length": LENGTH, "batch": batch, "growth": growth}
