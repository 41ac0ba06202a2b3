"""Model inputs: ``[CLS] passage [SEP]``, or for a reranker ``[CLS] query [SEP] passage [SEP]``.

All texts, including queries (`tokenised`), are tokenised by the same code and stored as `Tokens`. A
passage consists of its title and its text. Many sequences are concatenated, sorted by length, and
divided into chunks of nearly equal lengths, which limit the memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
import pyarrow as pa

from cdmae.collections.store import read_queries
from cdmae.errors import InputError
from cdmae.models.heads import multi, own
from cdmae.models.ragged import Ragged, indices, interleaved, same
from cdmae.tokens import prompts
from cdmae.tokens.corpus import Tokens
from cdmae.tokens.tokenise import Tokeniser
from cdmae.tokens.vocabulary import Vocabulary

if TYPE_CHECKING:
    from cdmae.models.checkpoint import Model


def tokenised(texts: Sequence[str], tokeniser: Tokeniser) -> Tokens:
    """Tokenise queries with a tokenizer."""
    titles = pa.array([""] * len(texts), pa.string())
    return tokeniser.tokens(pa.table({"title": titles, "text": pa.array(list(texts), pa.string())}))


def queries_of(collection: Path | str, split: str, tokenizer: Path | str) -> Tokens:
    """Tokenise the queries of a collection's split with the tokenizer in a folder."""
    texts = read_queries(collection, split)["text"].tolist()
    return tokenised(texts, Tokeniser(tokenizer))


def frame(pieces: Ragged, vocabulary: Vocabulary) -> Ragged:
    """Return ``[CLS] pieces [SEP]`` for each sequence of word-pieces, as the model's ids, int64."""
    cls = same(len(pieces), vocabulary.cls_id)
    sep = same(len(pieces), vocabulary.sep_id)
    return interleaved(cls, replace(pieces, values=vocabulary.of_model(pieces.values)), sep)


@dataclass(frozen=True)
class Prompt:
    """A text that precedes every query, or every passage, and its word-pieces."""

    text: str = ""
    ids: tuple[int, ...] = ()

    @classmethod
    def read(cls, text: str, tokenizer: Path | str) -> Prompt:
        """Tokenise a prompt with the tokenizer in a folder (`prompts.read_prompt`)."""
        return cls(text, prompts.read_prompt(text, tokenizer)) if text else cls()


def texts(
    model: Model, kind: Literal["query", "passage"], source: Tokens, rows: np.ndarray
) -> Ragged:
    """Return a retriever's input for the given rows of queries or passages, with the prompt."""
    length = model.lengths[f"{kind}_length"]
    prompt = model.prompts.get(f"{kind}_prompt", Prompt())
    room = prompts.room(len(prompt.ids), length)
    if room < 1:
        raise InputError(
            f"{kind}_prompt uses {len(prompt.ids)} of {length} word-pieces; expected a prompt "
            "that leaves room for a text and two special tokens"
        )
    pieces = Ragged(source.ids, source.starts).take(rows, room)
    if prompt.ids:
        pieces = interleaved(same(len(rows), *prompt.ids), pieces)
    read = frame(pieces, model.vocabulary)
    if model.head == "multi":
        return multi.flagged(read, kind, model)
    if model.target == "recall":
        return own.flagged(read, source.word_starts[pieces.values])
    return read


def pairs(
    first: Tokens,
    first_rows: np.ndarray,
    second: Tokens,
    second_rows: np.ndarray,
    length: int,
    vocabulary: Vocabulary,
) -> Ragged:
    """Return ``[CLS] query [SEP] passage [SEP]`` for each pair, cut to `length` word-pieces.

    The length includes special tokens. The tokenizer determines the number of [SEP] in a pair
    (RoBERTa: two). The longer text is cut first; the ids equal the result of transformers'
    ``truncation="longest_first"``.
    """
    room = length - 2 - vocabulary.separators
    query_lengths = first.starts[first_rows + 1] - first.starts[first_rows]
    passage_lengths = second.starts[second_rows + 1] - second.starts[second_rows]
    # The longer text gets the odd word-piece.
    half = np.where(query_lengths > passage_lengths, room - room // 2, room // 2)
    query_room = np.maximum(half, room - passage_lengths)
    passage_room = np.maximum(room - half, room - query_lengths)
    query = Ragged(first.ids, first.starts).take(first_rows, query_room)
    passage = Ragged(second.ids, second.starts).take(second_rows, passage_room)
    between = same(len(query), *[vocabulary.sep_id] * vocabulary.separators)
    framed = frame(interleaved(query, between, passage), vocabulary)
    types = np.zeros_like(framed.values)
    second_segment = indices(framed.starts[1:] - passage.lengths - 1, passage.lengths + 1)
    types[second_segment] = vocabulary.second
    return replace(framed, types=types)


def chunks(lengths: np.ndarray, budget: int, rank: int = 0, size: int = 1) -> list[np.ndarray]:
    """Sort rows by length, and divide them into chunks of at most `budget` padded word-pieces.

    Each chunk holds row numbers, in ascending order of length. A sequence longer than the budget
    becomes a chunk of its own. rank, size: of the process, which gets a share of all lengths.
    """
    order = np.argsort(lengths, kind="stable")[rank::size]
    ordered = lengths[order]
    cuts = []
    begin = 0
    while begin < len(order):
        padded = ordered[begin:] * np.arange(1, len(order) - begin + 1)
        end = begin + max(1, int(np.searchsorted(padded, budget, side="right")))
        cuts.append(order[begin:end])
        begin = end
    return cuts
