"""Compare masking a batch with Hugging Face's and RetroMAE's collators, on one thread.

    python -m benchmarks.masking

The batch is 128 passages of 150 word-pieces, in memory, and every form makes one mask per passage.
The paper's table 6 reports 0.4 ms for uniform masks, 1.1 ms by importance, and 11.6 ms for a mask
per position, on another CPU.

tokens      Hugging Face's masking of the ready tensor; ours, uniformly and by importance
words       Hugging Face's masking of whole words, the mask of BERT's collators in Python, and ours
positions   a mask per position, for RetroMAE's decoder: RetroMAE's collator, and ours

Fails unless all forms of a group mask the same share of the word-pieces.
"""

from __future__ import annotations

import argparse
import random
import warnings
from collections.abc import Callable
from copy import deepcopy

import numpy as np
import torch
from transformers import BertTokenizer, DataCollatorForLanguageModeling

from benchmarks import forms
from cdmae import masking
from cdmae.masking import Side
from cdmae.pretraining.objectives.retromae import hide
from cdmae.tokens.corpus import Tokens
from cdmae.tokens.vocabulary import Vocabulary

BATCH = 128  # passages masked together
LENGTH = 150
V = 30522  # BERT's word-pieces; a fifth of ours continue a word

GROUPS = {
    "tokens": {
        "ours": "ours, uniform",
        "hugging_face": "Hugging Face, by token",
        "importance": "ours, by importance",
    },
    "words": {
        "ours": "ours, whole words",
        "hugging_face": "Hugging Face, whole words",
        "python": "whole words in Python, as in BERT's collators",
    },
    "positions": {
        "ours": "ours, a mask per position",
        "python": "RetroMAE's collator",
    },
}
TASK = {
    "tokens": "masks of single tokens",
    "words": "masks of whole words",
    "positions": "a mask per position",
}
TOLERANCE = 0.02  # of the masked share: Hugging Face draws every token by itself


def passages() -> tuple[masking.Batch, Vocabulary]:
    """Make a batch of random word-pieces of random importance."""
    rng = np.random.default_rng(0)
    ids = rng.integers(1000, V, BATCH * LENGTH).astype(np.uint16)
    starts = np.arange(BATCH + 1) * LENGTH
    special = np.arange(V) < 1000
    begins = np.arange(V) % 5 > 0
    own = np.flatnonzero(~special).astype(np.int32)
    vocabulary = Vocabulary(V, 0, 101, 102, 103, special, own, begins)
    tokens = Tokens(ids, starts, starts[:-1], begins)
    values = rng.normal(5, 6.4, len(ids)).astype(np.float16)
    return masking.read(tokens, np.arange(BATCH), LENGTH, vocabulary, values), vocabulary


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


def start(form: str, given: argparse.Namespace) -> Callable[[], list[float]]:
    """Return a form's work, which returns the share of masked word-pieces."""
    warnings.simplefilter("ignore")
    batch, vocabulary = passages()
    ratio = 0.5
    key = masking.key(42, "decoder", 0)
    draw = random.Random(0)
    begins = vocabulary.word_starts
    pieces = [
        ["a" if begins[each] else "##a" for each in row] for row in batch.ids[:, 1:-1].tolist()
    ]

    def ours() -> float:
        kind = {"tokens": "uniform", "words": "whole_word"}[given.group]
        side = Side("importance" if form == "importance" else kind, ratio)
        return masking.mask(batch, side, vocabulary, key)[1][:, 1:-1].mean()

    def by_position() -> float:
        return hide(batch, Side("whole_word", ratio), key)[:, 1:-1, 1:-1].mean()

    def in_python() -> float:
        return np.mean([np.mean(whole_word_mask(row, ratio, draw)) for row in pieces])

    def by_retromae() -> float:
        encoder_and_decoder = retromae(pieces, draw)
        return np.mean([1 - rows.float().mean() for rows in encoder_and_decoder[1::2]])

    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{row}" for row in range(V - 5))]
    tokenizer = BertTokenizer(vocab={name: row for row, name in enumerate(names)})
    collator = DataCollatorForLanguageModeling(
        tokenizer, mlm_probability=ratio, whole_word_mask=given.group == "words"
    )
    ids = torch.tensor(batch.ids[:, 1:-1], dtype=torch.long)
    special = torch.zeros(ids.shape, dtype=torch.bool)
    ends = np.cumsum(batch.word_starts[:, 1:-1] + 1, axis=1)  # a gap before each word
    offsets = torch.from_numpy(np.stack([ends - 1, ends], axis=-1))

    torch.manual_seed(0)  # of the collator: every form must mask equally many word-pieces

    def hugging_face() -> float:
        words = (offsets,) if given.group == "words" else ()
        _, labels = collator.torch_mask_tokens(ids.clone(), special, *words)
        return (labels != -100).float().mean().item()

    work = {"ours": ours, "importance": ours, "hugging_face": hugging_face, "python": in_python}
    if given.group == "positions":
        work = {"ours": by_position, "python": by_retromae}

    def once() -> list[float]:
        return [float(np.mean([work[form]() for _ in range(given.calls)]))]

    return once


def main() -> None:
    """Measure the forms of each group."""
    given = forms.parser(__doc__, calls=20).parse_args()
    for name, titles in GROUPS.items():
        calls = 1 if name == "positions" else given.calls
        one = argparse.Namespace(**{**vars(given), "group": name, "calls": calls})
        sizes = f"{BATCH} passages of {LENGTH} word-pieces"
        forms.compare(start, titles, one, TASK[name], work=sizes, tolerance=TOLERANCE, units=calls)


if __name__ == "__main__":
    main()
