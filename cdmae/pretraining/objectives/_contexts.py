"""Two texts of each passage: neighbouring spans, or the passage and one of its queries.

In query-as-context pre-training (Wu et al. 2023), the context of a passage is a query for it, not
its neighbouring span. Any collection with judged queries has such pairs. So has a collection of the
source `pseudo`, whose queries are made from its passages.

The two texts of a passage are neighbours in a batch: texts 2 i and 2 i + 1.

    B passages of a batch, A passages with queries, E pairs of a passage and a query
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cdmae.collections.store import read_qrels
from cdmae.config.encoders import ASKED_SPLIT
from cdmae.errors import InputError
from cdmae.masking.noise import uniforms
from cdmae.models import sequences
from cdmae.models.ragged import starts_of
from cdmae.pretraining.batches import Texts
from cdmae.pretraining.reader import Reader, word_begins
from cdmae.tokens.corpus import Tokens

if TYPE_CHECKING:
    from cdmae.config.encoders import Pretraining
    from cdmae.masking import Corpus, Side

MIDDLE = (0.25, 0.75)  # the part of a passage from which the cut into two spans is drawn


@dataclass(frozen=True)
class Asked:
    """Passages with queries.

    tokens: the word-pieces of all passages, then of all queries. passages: int64 [A], ascending
    rows. queries: int64 [E], rows of `tokens`; those of passage a are
    ``queries[starts[a]:starts[a + 1]]``.
    """

    tokens: Tokens
    passages: np.ndarray
    queries: np.ndarray
    starts: np.ndarray

    @classmethod
    def read(cls, corpus: Corpus) -> Asked:
        """Read the relevant queries of a collection's passages.

        Raises `InputError` if no passage has a query.
        """
        passages = corpus.tokens
        folder = corpus.collection
        qrels = read_qrels(folder, ASKED_SPLIT)
        relevant = qrels[(qrels["grade"] > 0) & (qrels["passage"] < len(passages))]
        if relevant.empty:
            raise InputError(
                f"{folder} has no passage with a relevant query of split {ASKED_SPLIT}; expected "
                "for context query: a collection that has some"
            )
        pairs = relevant.sort_values(["passage", "query"])
        rows, counts = np.unique(pairs["passage"].to_numpy(np.int64), return_counts=True)
        queries = sequences.queries_of(folder, ASKED_SPLIT, corpus.tokenizer, 1)
        end = passages.starts[-1]
        tokens = Tokens(
            np.concatenate([passages.ids, queries.ids]),
            np.concatenate([passages.starts, end + queries.starts[1:]]),
            np.concatenate([passages.text_starts, end + queries.text_starts]),
            passages.word_starts,
        )
        numbers = len(passages) + pairs["query"].to_numpy(np.int64)
        return cls(tokens, rows, numbers, starts_of(counts))

    def drawn(self, rows: np.ndarray, draws: np.ndarray) -> np.ndarray:
        """Return one query of each of the passages `rows`, by a number in [0, 1): int64 [B]."""
        index = np.searchsorted(self.passages, rows)
        first = self.starts[index]
        count = self.starts[index + 1] - first
        return self.queries[first + np.floor(draws.astype(np.float64) * count).astype(np.int64)]


class Contexts(Reader):
    """Reads two spans of each passage, or with `context: query` the passage and a query."""

    spans = 2

    def __init__(
        self,
        settings: Pretraining,
        sides: dict[str, Side],
        corpus: Corpus,
        seed: int,
        asked: Asked | None = None,
    ) -> None:
        """Read the queries, unless they are given."""
        if getattr(settings, "context", "") == "query":
            asked = asked or Asked.read(corpus)
        self.asked = asked
        super().__init__(settings, sides, corpus, seed, asked.tokens if asked else None)
        if asked:
            self.read_rows = asked.passages

    @property
    def longest(self) -> int:
        """Return the number of word-pieces at which passages are cut: a text's, or two spans'."""
        return self.length if self.asked else 2 * self.length

    def texts(self, rows: np.ndarray, epochs: np.ndarray) -> Texts:
        """Return two texts of each passage; the pair of texts is drawn for each epoch."""
        begins = self.store.starts[rows]
        lengths = self.lengths[rows]
        if self.asked:
            draws = uniforms(self.keys("query", epochs), rows, 1, salt=1)[:, 0]
            queries = self.asked.drawn(rows, draws)
            begins = np.stack([begins, self.store.starts[queries]], axis=1)
            lengths = np.stack([lengths, self.lengths[queries]], axis=1)
        else:
            cut = self.cut(rows, begins, lengths, epochs)
            begins = np.stack([begins, begins + cut], axis=1)
            lengths = np.stack([cut, np.minimum(lengths - cut, self.length)], axis=1)
        return pairs(rows, begins, lengths, epochs, len(self.tokens))

    def cut(
        self, rows: np.ndarray, begins: np.ndarray, lengths: np.ndarray, epochs: np.ndarray
    ) -> np.ndarray:
        """Draw the length of each passage's first span, int64 [B].

        The boundary is drawn from the middle half and moved to the beginning of a word. Both spans
        have at most the length of a passage.
        """
        draw = uniforms(self.keys("cut", epochs), rows, 1, salt=1)[:, 0].astype(np.float64)
        low = np.maximum(np.ceil(lengths * MIDDLE[0]), lengths - self.length)
        high = np.minimum(np.floor(lengths * MIDDLE[1]), self.length)
        cut = (low + np.floor(draw * np.maximum(0, high - low + 1))).astype(np.int64)
        pieces = self.tokens.ids  # stays on disk
        return word_begins(begins + cut, begins, pieces, self.vocabulary.word_starts) - begins


def pairs(
    rows: np.ndarray, begins: np.ndarray, lengths: np.ndarray, epochs: np.ndarray, passages: int
) -> Texts:
    """Return two texts of each passage, by their offsets and lengths [B, 2].

    Second texts have row numbers beyond the number of passages, and thus other random draws.
    """
    keys = np.stack([rows, rows + passages], axis=1)
    return Texts(keys.ravel(), begins.ravel(), lengths.ravel(), np.repeat(epochs, 2))


def exchanged(texts: Texts) -> Texts:
    """Return for each text the other one of its passage."""
    return texts[np.arange(len(texts.rows)) ^ 1]
