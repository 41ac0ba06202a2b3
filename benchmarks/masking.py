"""Compare masking a batch with Hugging Face's and RetroMAE's collators, on one thread.

    python -m benchmarks.masking

The batch is 128 passages of 150 word-pieces, in memory. There are four peers: Hugging Face's
collator for language modelling on lists of ids, its collator for whole words, its masking without
the collator, and RetroMAE's collator in plain Python. For enhanced decoding, RetroMAE's
collator draws 128 whole-word masks per passage; every position gets a random one.

Target: the decoder's mask in 0.5 ms, below Hugging Face's masking alone.
"""

from __future__ import annotations

import random
import tempfile
import time
import warnings
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path

import numpy as np
import torch
from transformers import DataCollatorForLanguageModeling

from benchmarks import texts
from benchmarks.tables import table
from cdmae import masking
from cdmae.importance import ami, ngrams
from cdmae.masking import Side
from cdmae.tokens import tokenise
from cdmae.tokens.vocabulary import Vocabulary

BATCH = 128
LENGTH = 150


def timed(function: Callable[[], object], seconds: float = 1.5) -> float:
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


def main() -> None:
    """Measure every form and print the table."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        passages = texts.passages(3_000_000)
        hugging_face = tokenise.train_tokenizer(passages["text"].to_pylist(), 8192)
        hugging_face.save_pretrained(folder)
        vocabulary = Vocabulary.read(folder)
        read = tokenise.tokenise(passages, folder, 1)
        ngrams.count_to(folder / "ngrams", read)
        ami.estimate(folder / "importance", folder / "ngrams", read, {})
        values = np.array(ami.read_values(folder / "importance"))
    rows = np.flatnonzero(np.diff(read.starts) >= LENGTH)[:BATCH]
    batch = masking.read(read, rows, LENGTH, vocabulary, values)
    sides = {
        "encoder": Side("whole_word", 0.3),
        "decoder": Side("importance", 0.5),
        "uniform": Side("uniform", 0.5),
    }
    keys = {name: masking.key(42, name, 0) for name in sides}

    def ours(name: str) -> object:
        return masking.mask(batch, sides[name], vocabulary, keys[name])

    def both() -> object:
        found = masking.read(read, rows, LENGTH, vocabulary, values)
        return [
            masking.mask(found, sides[name], vocabulary, keys[name])
            for name in ("encoder", "decoder")
        ]

    collator = DataCollatorForLanguageModeling(hugging_face, mlm_probability=0.5)
    words = DataCollatorForLanguageModeling(hugging_face, mlm_probability=0.5, whole_word_mask=True)
    lists = [{"input_ids": ids} for ids in batch.ids.tolist()]
    offsets = [
        {**each, "offset_mapping": _offsets(row)}
        for each, row in zip(lists, batch.word_starts, strict=True)
    ]
    ids = torch.tensor(batch.ids, dtype=torch.long)
    special = torch.zeros(batch.ids.shape, dtype=torch.bool)
    pieces = [hugging_face.convert_ids_to_tokens(each) for each in batch.ids[:8].tolist()]
    draw = random.Random(0)
    found = {
        "RetroMAE's collator, in Python": timed(lambda: retromae(pieces, draw))
        * BATCH
        / len(pieces),
        "Hugging Face, whole words": timed(lambda: words(offsets)),
        "Hugging Face": timed(lambda: collator(lists)),
        "Hugging Face, masking alone": timed(
            lambda: collator.torch_mask_tokens(ids.clone(), special)
        ),
        "ours: uniform": timed(lambda: ours("uniform")),
        "ours: whole words": timed(lambda: ours("encoder")),
        "ours: importance (decoder)": timed(lambda: ours("decoder")),
        "ours: importance, which tokens only": timed(
            lambda: masking.choose(batch, sides["decoder"], keys["decoder"])
        ),
        "ours: read, mask both sides": timed(both),
    }
    print(f"{BATCH} passages of {LENGTH} word-pieces, one thread\n")
    mine = found["ours: importance (decoder)"]
    print(
        table(
            [
                {
                    "form": name,
                    "ms per batch": f"{each:.2f}",
                    "ms per passage": f"{each / BATCH:.4f}",
                    "of ours (decoder)": f"{each / mine:.1f} x",
                }
                for name, each in found.items()
            ]
        )
    )


def _offsets(word_starts: np.ndarray) -> list[tuple[int, int]]:
    """Return the offsets of word-pieces in their text; Hugging Face uses them to find words."""
    ends = np.cumsum(word_starts + 1)
    return [(int(end) - 1, int(end)) for end in ends]


if __name__ == "__main__":
    main()
