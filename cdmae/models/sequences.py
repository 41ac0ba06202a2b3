"""What a fine-tuned model reads: ``[CLS] passage [SEP]``, or ``[CLS] query [SEP] passage [SEP]`` for a reranker.

Word-pieces come from `Tokens`, for queries too (`queries`), so every text is tokenised in one place. A passage is its
title, then its text. Many sequences are kept end to end, sorted by length and cut into chunks: what is computed
together has nearly one length, and memory follows the chunk.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import torch

from cdmae.collections.store import read_queries
from cdmae.models import packed
from cdmae.models.packed import Packed, Ragged
from cdmae.tokens import tokenise
from cdmae.tokens.corpus import Tokens
from cdmae.tokens.vocabulary import Vocabulary


@dataclass(frozen=True)
class Sequences:
    """Sequences end to end: sequence i is ``ids[starts[i]:starts[i + 1]]``.

    ids: int64 [S], special tokens included; starts: int64 [n + 1]; types: int64 [S], for pairs, as the tokenizer
    says; BERT's: 1 for what follows the first [SEP], else 0.
    """

    ids: np.ndarray
    starts: np.ndarray
    types: np.ndarray | None = None

    def __len__(self) -> int:
        """Return the number of sequences."""
        return len(self.starts) - 1

    @property
    def lengths(self) -> np.ndarray:
        """Word-pieces per sequence, int64 [n]."""
        return np.diff(self.starts)

    def take(self, rows: np.ndarray) -> Sequences:
        """Only these sequences, in this order."""
        index, starts = _places(self.starts[rows], self.lengths[rows])
        return Sequences(self.ids[index], starts, None if self.types is None else self.types[index])

    def pack(self, on: torch.device) -> Packed:
        """Put them on the device as one packed batch."""
        types = None if self.types is None else Ragged(self.types, self.starts)
        return packed.pack(Ragged(self.ids, self.starts), on, types)


def queries(texts: Sequence[str], tokenizer: Path | str, threads: int) -> Tokens:
    """Tokenise queries by the tokenizer in a folder."""
    table = pa.table({"title": pa.array([""] * len(texts), pa.string()), "text": pa.array(list(texts), pa.string())})
    return tokenise.tokenise(table, tokenizer, threads)


def queries_of(collection: Path | str, split: str, tokenizer: Path | str, threads: int) -> Tokens:
    """Tokenise the queries of a collection's split, by the tokenizer in a folder."""
    return queries(read_queries(collection, split)["text"].tolist(), tokenizer, threads)


def single(source: Tokens, rows: np.ndarray, length: int, vocabulary: Vocabulary) -> Sequences:
    """``[CLS] pieces [SEP]`` of some rows, by the model's ids, cut to `length` word-pieces with the special ones."""
    framed = packed.frame(packed.take(source, rows, length - 2), vocabulary.cls_id, vocabulary.sep_id)
    return Sequences(vocabulary.of_model(framed.values), framed.starts)


def joined(first: Sequences, second: Sequences) -> Sequences:
    """Join the sequences of both, the first ones first."""
    starts = np.concatenate([first.starts, second.starts[1:] + first.starts[-1]])
    return Sequences(np.concatenate([first.ids, second.ids]), starts)


def pairs(
    first: Tokens, first_rows: np.ndarray, second: Tokens, second_rows: np.ndarray, length: int, vocabulary: Vocabulary
) -> Sequences:
    """``[CLS] query [SEP] passage [SEP]`` of some pairs, cut to `length` word-pieces with the special ones.

    As many [SEP] divide a pair as the tokenizer puts there (RoBERTa: two). The longer of the two is cut first, to the
    same ids as transformers' ``truncation="longest_first"``.
    """
    cut = _longest_first(
        first.starts[first_rows + 1] - first.starts[first_rows],
        second.starts[second_rows + 1] - second.starts[second_rows],
        length - 2 - vocabulary.separators,
    )
    starts = _starts(cut[0] + cut[1] + 2 + vocabulary.separators)
    ids, types = np.empty(starts[-1], dtype=np.int64), np.zeros(starts[-1], dtype=np.int64)
    middle = starts[:-1] + cut[0] + 1  # the first [SEP]
    after = middle + vocabulary.separators
    ids[starts[:-1]], ids[starts[1:] - 1] = vocabulary.cls_id, vocabulary.sep_id
    ids[middle], ids[after - 1] = vocabulary.sep_id, vocabulary.sep_id
    for source, rows, kept, begin in (
        (first, first_rows, cut[0], starts[:-1] + 1),
        (second, second_rows, cut[1], after),
    ):
        places, inner = _places(source.starts[rows], kept)
        ids[_shifted(inner, begin)] = vocabulary.of_model(source.ids[places])
    types[_places(after, cut[1] + 1)[0]] = vocabulary.second
    return Sequences(ids, starts, types)


def chunks(lengths: np.ndarray, budget: int) -> list[np.ndarray]:
    """Sort rows by length, longest last, and cut them: each chunk holds at most `budget` word-pieces when padded.

    A sequence longer than the budget is a chunk of its own.
    """
    order = np.argsort(lengths, kind="stable")
    cuts, begin = [], 0
    ordered = lengths[order]
    while begin < len(order):
        padded = ordered[begin:] * np.arange(1, len(order) - begin + 1)
        end = begin + max(1, int(np.searchsorted(padded, budget, side="right")))
        cuts.append(order[begin:end])
        begin = end
    return cuts


def _longest_first(first: np.ndarray, second: np.ndarray, room: int) -> tuple[np.ndarray, np.ndarray]:
    """Count the pieces that are kept of each of two texts that share `room` places."""
    short, long = np.minimum(first, second), np.maximum(first, second)
    over = short + long > room
    kept_long = np.where(over, np.where(short > room, short, np.maximum(short, room - short)), long)
    both = short + kept_long > room  # both are longer than half of the room
    kept_short = np.where(both, room // 2, short)
    kept_long = np.where(both, room // 2 + room % 2, kept_long)
    swapped = first > second
    return np.where(swapped, kept_long, kept_short), np.where(swapped, kept_short, kept_long)


def _places(begins: np.ndarray, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the places ``begins[i], begins[i] + 1, ...`` of every stretch, end to end; and each stretch's start."""
    starts = _starts(lengths)
    return _shifted(starts, begins), starts


def _shifted(starts: np.ndarray, begins: np.ndarray) -> np.ndarray:
    return np.arange(starts[-1]) + np.repeat(begins - starts[:-1], np.diff(starts))


def _starts(lengths: np.ndarray) -> np.ndarray:
    starts = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=starts[1:])
    return starts
