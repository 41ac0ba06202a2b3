"""Sizes of collections: counted if a collection exists, otherwise estimated by its source."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cdmae.collections import MOST_PASSAGES, readable
from cdmae.config import systems
from cdmae.config.kinds._system import MOST_EXHAUSTIVE
from cdmae.errors import InputError
from cdmae.fields import refusal
from cdmae.importance import MOST_WORDS
from cdmae.layout import place

if TYPE_CHECKING:
    from cdmae.config.schema import Config

BYTES_A_WORD = 6.0  # mean characters of an English word, including the space
# BERT's word-pieces per word; punctuation counts as words. Tokenizers with 8,192 pieces, trained on
# the default's text, give 1.38 (WordPiece), 1.42 (byte-level BPE) and 1.40 (Unigram)
PIECES_A_WORD = 1.35
MARGIN = 1.25  # factor by which estimates from the sizes of files may be too high


@dataclass(frozen=True)
class Size:
    """The number of passages, their mean number of words, and the number of queries by split."""

    passages: int
    words: float
    queries: dict[str, int]
    measured: bool = False

    @property
    def all_words(self) -> float:
        """Return the number of words of all passages."""
        return self.passages * self.words

    def tokens(self, longest: int) -> float:
        """Return the mean word-pieces of a passage after truncation, including [CLS] and [SEP].

        Lengths are assumed to be gamma distributed with shape 2 and mean m. The mean of cut lengths
        is m - exp(-2 L / m) (m + L). For the embedded collection (79 on average) L = 64 gives 49.6;
        counted, 49.1.
        """
        mean = self.words * PIECES_A_WORD
        room = longest - 2
        return 2 + mean - math.exp(-2 * room / mean) * (mean + room) if mean else 2.0


def size(config: Config, collection: str) -> Size:
    """Return the size of a collection.

    Raises `InputError` if the collection does not exist and its source does not know the size.
    """
    known = known_size(config, collection)
    if known is None:
        about = place(config.results, "about", collection=collection)
        raise InputError(
            f"collections.{collection} does not exist yet and its source does not know its size; "
            f"./run {about}"
        )
    return known


def known_size(config: Config, collection: str) -> Size | None:
    """Return the counted or expected size of a collection; None if unknown."""
    counted = count(config, collection)
    if counted:
        return counted
    expected = config.collections[collection].settings.expected()
    return Size(*expected) if expected else None


def check(config: Config) -> None:
    """Refuse damaged collections, and collections with too many passages or words to count.

    Estimates have a margin; the counting job itself refuses collections within the margin.
    """
    known = {name: known_size(config, name) for name in config.collections}
    _check_exhaustive(config, known)
    for name, corpus in known.items():
        if corpus and corpus.passages > MARGIN * MOST_PASSAGES:
            words = (
                f" has about {corpus.passages:,} passages; allowed: up to {MOST_PASSAGES:,} "
                "(split it into several collections)"
            )
            raise refusal(("collections", name), words)
    for name, encoder in config.encoders.items():
        corpus = known[encoder.collection] if encoder.reads_importance else None
        if not corpus:
            continue
        unit = config.importance[encoder.importance].unit
        units = corpus.all_words * (1 if unit == "word" else PIECES_A_WORD)
        if units > MARGIN * MOST_WORDS:
            words = (
                f" is {encoder.collection}, of about {units:,.0f} {unit}s, "
                f"whose n-grams cannot be counted; allowed: up to {MOST_WORDS:,}, or maskings that "
                "do not read importance"
            )
            raise refusal(("encoders", name, "collection"), words)


def _check_exhaustive(config: Config, known: dict[str, Size | None]) -> None:
    """Refuse multi-vector systems that would score all passages of a large collection."""
    mined = systems.mined(config)
    for name, system in config.systems.items():
        if system.candidates or not system.is_multi(config):
            continue
        searched = [*config.evaluation.collections, *(on for own, on, _ in mined if own == name)]
        for collection in dict.fromkeys(searched):
            corpus = known[collection]
            if corpus and corpus.passages > MARGIN * MOST_EXHAUSTIVE:
                words = (
                    f" is missing, and {collection} has about {corpus.passages:,} passages with a "
                    f"vector per word-piece; allowed without: up to {MOST_EXHAUSTIVE:,}; set it to "
                    "a system whose best passages are scored, such as one of kind bm25"
                )
                raise refusal(("systems", name, "candidates"), words)


def count(config: Config, collection: str) -> Size | None:
    """Return the size of a collection if it exists, otherwise None.

    Jobs request memory by these sizes, so every run calls this function first. Raises `InputError`
    for damaged files.
    """
    folder = Path(place(config.results, "collection", collection=collection))
    passages = folder / "passages.parquet"
    queries = folder / "queries.parquet"
    if not (passages.exists() and queries.exists() and readable()):
        return None
    import pyarrow.parquet as pq

    from cdmae.arrays import reading

    with reading(passages):
        metadata = pq.read_metadata(passages)
    columns = (
        metadata.row_group(group).column(number)
        for group in range(metadata.num_row_groups)
        for number in (1, 2)
    )
    words = sum(column.total_uncompressed_size for column in columns) / BYTES_A_WORD
    with reading(queries):
        counts = pq.read_table(queries, columns=["split"])["split"].value_counts().to_pylist()
    by_split = {row["values"]: row["counts"] for row in counts}
    return Size(metadata.num_rows, words / max(1, metadata.num_rows), by_split, measured=True)
