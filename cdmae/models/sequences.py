"""Model inputs: ``[CLS] passage [SEP]``, or for a reranker ``[CLS] query [SEP] passage [SEP]``.

Word-pieces come from `Tokens`, for queries too (`queries`), so all texts are tokenised by the
same code. A passage is its title, then its text. Many sequences are stored end to end, sorted by
length and cut into chunks of nearly equal lengths; memory follows the chunk.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa

from cdmae.collections.store import read_queries
from cdmae.models.ragged import Ragged, beside, places, same
from cdmae.tokens import tokenise
from cdmae.tokens.corpus import Tokens
from cdmae.tokens.vocabulary import Vocabulary

if TYPE_CHECKING:
    from cdmae.models.checkpoint import Model


def queries(texts: Sequence[str], tokenizer: Path | str, threads: int) -> Tokens:
    """Tokenise queries by the tokenizer in a folder."""
    table = pa.table(
        {
            "title": pa.array([""] * len(texts), pa.string()),
            "text": pa.array(list(texts), pa.string()),
        }
    )
    return tokenise.tokenise(table, tokenizer, threads)


def queries_of(collection: Path | str, split: str, tokenizer: Path | str, threads: int) -> Tokens:
    """Tokenise the queries of a collection's split, by the tokenizer in a folder."""
    return queries(read_queries(collection, split)["text"].tolist(), tokenizer, threads)


def frame(pieces: Ragged, vocabulary: Vocabulary) -> Ragged:
    """Frame each sequence of word-pieces by [CLS] and [SEP], as the model's ids, int64."""
    cls, sep = (same(len(pieces), number) for number in (vocabulary.cls_id, vocabulary.sep_id))
    return beside(cls, replace(pieces, values=vocabulary.of_model(pieces.values)), sep)


def content(starts: np.ndarray) -> np.ndarray:
    """Return the mask of rows that are neither [CLS] nor [SEP], bool [S], of framed sequences."""
    inside = np.ones(starts[-1], bool)
    inside[starts[:-1]] = inside[starts[1:] - 1] = False
    return inside


def single(source: Tokens, rows: np.ndarray, length: int, vocabulary: Vocabulary) -> Ragged:
    """Return ``[CLS] pieces [SEP]`` for some rows, as the model's ids.

    Each sequence is cut to `length` word-pieces, special tokens included.
    """
    return frame(Ragged(source.ids, source.starts).take(rows, length - 2), vocabulary)


def texts(
    model: Model, kind: Literal["query", "passage"], source: Tokens, rows: np.ndarray
) -> Ragged:
    """Return the queries or passages of some rows as a retriever reads them."""
    return single(source, rows, model.lengths[f"{kind}_length"], model.vocabulary)


def pairs(
    first: Tokens,
    first_rows: np.ndarray,
    second: Tokens,
    second_rows: np.ndarray,
    length: int,
    vocabulary: Vocabulary,
) -> Ragged:
    """Return ``[CLS] query [SEP] passage [SEP]`` for some pairs, cut to `length` word-pieces.

    The length includes special tokens. The tokenizer decides how many [SEP] divide a pair (RoBERTa:
    two). The longer text is cut first, to the same ids as transformers'
    ``truncation="longest_first"``.
    """
    sources = (first, first_rows), (second, second_rows)
    room = length - 2 - vocabulary.separators
    lengths = [source.starts[rows + 1] - source.starts[rows] for source, rows in sources]
    # The longer text gets the odd word-piece.
    half = np.where(lengths[0] > lengths[1], room - room // 2, room // 2)
    cut = np.maximum(half, room - lengths[1]), np.maximum(room - half, room - lengths[0])
    query, passage = (
        Ragged(source.ids, source.starts).take(rows, longest)
        for (source, rows), longest in zip(sources, cut, strict=True)
    )
    between = same(len(query), *[vocabulary.sep_id] * vocabulary.separators)
    framed = frame(beside(query, between, passage), vocabulary)
    types = np.zeros_like(framed.values)
    types[places(framed.starts[1:] - passage.lengths - 1, passage.lengths + 1)] = vocabulary.second
    return replace(framed, types=types)


def chunks(lengths: np.ndarray, budget: int) -> list[np.ndarray]:
    """Sort rows by length, and cut them into chunks of at most `budget` word-pieces with padding.

    Rows are in ascending order of length. A sequence over the budget is a chunk of its own.
    """
    order = np.argsort(lengths, kind="stable")
    ordered = lengths[order]
    cuts = []
    begin = 0
    while begin < len(order):
        padded = ordered[begin:] * np.arange(1, len(order) - begin + 1)
        end = begin + max(1, int(np.searchsorted(padded, budget, side="right")))
        cuts.append(order[begin:end])
        begin = end
    return cuts
