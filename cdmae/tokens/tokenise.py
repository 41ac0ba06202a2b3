"""Tokenisation: each collection once per tokenizer, by the model's Hugging Face tokenizer.

WordPiece tokenizers read title and text apart: neither changes the word-pieces of the other.
Byte-level BPE and Unigram tokenizers read them joined by a space, as a user of the trained model
joins them, and their own word boundaries count (`Vocabulary.doubled`).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from cdmae.collections.store import stream_passages
from cdmae.compiled import Threads
from cdmae.config import pretrained
from cdmae.errors import InputError, cause
from cdmae.tokens.corpus import Tokens, stream_tokens
from cdmae.tokens.vocabulary import SPECIALS, Vocabulary, check, read_backend

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerBase

# single characters that a trained vocabulary keeps at most, the commonest, as BERT's has about
# 1,000
ALPHABET = 1000
LONGEST = (
    1000  # letters of a word in training, whose time grows with their square; what is longer is cut
)
SAMPLE = "a 1 é я 中 ا"  # every tokenizer makes word-pieces from part of it
ROWS_AT_ONCE = 1024  # passages that a thread tokenises together


def train_tokenizer(texts: Iterable[str], vocabulary: int) -> PreTrainedTokenizerBase:
    """Train an uncased WordPiece tokenizer, normalised as BERT's, of at most `vocabulary` pieces.

    `texts` are read twice. The same texts give the same vocabulary in every process. Little text
    gives a smaller vocabulary.
    """
    from transformers import BertTokenizer

    return BertTokenizer(vocab=train_pieces(texts, vocabulary))


def train_pieces(texts: Iterable[str], vocabulary: int) -> dict[str, int]:
    """Train a tokenizer on `texts`; return its word-pieces and their ids."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    words = [pre_tokenizers.BertPreTokenizer(), pre_tokenizers.FixedLength(LONGEST)]
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(words)
    letters = _alphabet(tokenizer, texts)
    # The trainer numbers continuing characters as it meets them in a randomly seeded hash map, and
    # breaks ties by number; naming all of them beforehand makes it repeatable.
    fixed = [
        *SPECIALS,
        *letters,
        *(f"##{letter}" for letter in letters if _continues(tokenizer, letter)),
    ]
    if len(fixed) > vocabulary:
        raise InputError(
            f"vocabulary is {vocabulary}; the single characters of this text alone need "
            f"{len(fixed)}"
        )
    trainer = trainers.WordPieceTrainer(
        vocab_size=vocabulary,
        special_tokens=fixed,
        initial_alphabet=letters,
        limit_alphabet=len(letters),
        min_frequency=2,
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return dict(sorted(tokenizer.get_vocab().items(), key=lambda item: item[1]))


def _alphabet(tokenizer: Tokenizer, texts: Iterable[str]) -> list[str]:
    raw: Counter[str] = Counter()
    for text in texts:
        raw.update(text)
    counts: Counter[str] = Counter()
    for letter, count in raw.items():
        for normal in tokenizer.normalizer.normalize_str(letter).replace(" ", ""):
            counts[normal] += count
    return sorted(sorted(counts, key=lambda letter: (-counts[letter], letter))[:ALPHABET])


def _continues(tokenizer: Tokenizer, letter: str) -> bool:
    # Punctuation and Chinese characters are words of their own and never continue one.
    return (
        len(
            tokenizer.pre_tokenizer.pre_tokenize_str(
                tokenizer.normalizer.normalize_str("a" + letter)
            )
        )
        == 1
    )


def load_tokenizer(folder: Path | str) -> PreTrainedTokenizerBase:
    """Load the tokenizer of a folder or the hub.

    Raises `InputError` for a tokenizer without word boundaries.
    """
    from transformers import AutoTokenizer

    try:
        name, revision = pretrained.divided(str(folder))
        tokenizer = AutoTokenizer.from_pretrained(name, revision=revision, trust_remote_code=False)
    except Exception as error:  # the libraries raise anything for third-party files
        raise InputError(
            f"{folder} holds no tokenizer that transformers can load: {cause(error)}"
        ) from None
    # Without files, transformers makes a tokenizer with special tokens only.
    if set(tokenizer.get_vocab()) <= set(tokenizer.all_special_tokens):
        raise InputError(
            f"{folder} holds no tokenizer; allowed: one with the word-pieces of a tokenizer.json "
            "or vocab.txt"
        )
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is None:
        raise InputError(
            f"{folder} holds a tokenizer without a fast form; allowed: one that `tokenizers` can "
            "load"
        )
    check(json.loads(backend.to_str()), folder)
    if lacking := [
        name for name in ("mask", "pad") if getattr(tokenizer, f"{name}_token_id") is None
    ]:
        raise InputError(
            f"the tokenizer in {folder} has no {lacking[0]} token; allowed: the tokenizer of a "
            "masked language model"
        )
    if not backend.encode(SAMPLE, add_special_tokens=False).ids:
        raise InputError(
            f"the tokenizer in {folder} makes no word-pieces of a text; allowed: one that does"
        )
    return tokenizer


@dataclass(frozen=True)
class Texts:
    """The training texts of a tokenizer: a collection's titles and texts, read again each time."""

    collection: Path

    def __iter__(self) -> Iterator[str]:
        """Yield all titles, then all texts."""
        for name in ("title", "text"):
            for passages in stream_passages(self.collection, [name]):
                yield from filter(None, passages[name].to_pylist())


# --- tokenising a collection ----------------------------------------------------------------------


def tokenise(passages: pa.Table, tokenizer: Path | str, threads: int) -> Tokens:
    """Tokenise `passages` (columns title and text) by the tokenizer in a folder.

    The ids are equal to the Hugging Face tokenizer's for title and text without special tokens. As
    there, a special token spelt out in a text, such as ``[MASK]``, becomes that special token.
    """
    vocabulary = Vocabulary.read(tokenizer)
    done = list(_tokenised([passages], tokenizer, vocabulary, threads))
    ids = np.concatenate([np.empty(0, _dtype(vocabulary)), *(pieces for pieces, _ in done)])
    lengths = np.concatenate([np.empty(0, np.int64), *(part for _, part in done)])
    return Tokens.of(ids, lengths, vocabulary.word_starts)


def tokenise_to(
    folder: Path | str, passages: Iterable[pa.Table], tokenizer: Path | str, threads: int
) -> None:
    """Tokenise a stream of passages like `tokenise`, into the files of `write_tokens`."""
    vocabulary = Vocabulary.read(tokenizer)
    done = _tokenised(passages, tokenizer, vocabulary, threads)
    stream_tokens(folder, done, _dtype(vocabulary), vocabulary.word_starts)


def _dtype(vocabulary: Vocabulary) -> type:
    return np.uint16 if vocabulary.size <= 1 << 16 else np.uint32


def _tokenised(
    passages: Iterable[pa.Table], tokenizer: Path | str, vocabulary: Vocabulary, threads: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield each batch's ids and segment lengths (title, text, title, text, ...)."""
    kind = _Joined if vocabulary.doubled else _Apart
    workers: SimpleQueue[_Apart | _Joined] = SimpleQueue()
    for _ in range(max(1, threads)):
        workers.put(kind(tokenizer, vocabulary))

    def work(batch: pa.RecordBatch) -> tuple[np.ndarray, np.ndarray]:
        worker = workers.get()
        try:
            return worker.tokenise(batch)
        finally:
            workers.put(worker)

    with Threads(threads) as pool:
        tables = (table.select(["title", "text"]) for table in passages)
        yield from pool.stream(
            work, (batch for table in tables for batch in table.to_batches(ROWS_AT_ONCE))
        )


class _Apart:
    """Tokenises batches of passages, titles and texts apart."""

    def __init__(self, tokenizer: Path | str, vocabulary: Vocabulary) -> None:
        self.backend = read_backend(tokenizer)
        self.dtype = _dtype(vocabulary)

    def tokenise(self, batch: pa.RecordBatch) -> tuple[np.ndarray, np.ndarray]:
        """Tokenise a batch: its ids, and its segments' lengths (title, text, title, text, ...)."""
        columns = (column.to_pylist() for column in batch.columns)
        segments = [segment or "" for pair in zip(*columns, strict=True) for segment in pair]
        encoded = self.backend.encode_batch_fast(segments, add_special_tokens=False)
        ids = [encoding.ids for encoding in encoded]
        lengths = np.array([len(own) for own in ids], np.int64)
        return np.fromiter(chain.from_iterable(ids), self.dtype, lengths.sum()), lengths


class _Joined:
    """Tokenises batches of passages, each with its title and text joined."""

    def __init__(self, tokenizer: Path | str, vocabulary: Vocabulary) -> None:
        self.backend = read_backend(tokenizer)
        self.dtype = _dtype(vocabulary)
        self.pieces = vocabulary.pieces

    def tokenise(self, batch: pa.RecordBatch) -> tuple[np.ndarray, np.ndarray]:
        """Tokenise a batch as `_Apart` does; continuing word-pieces have the upper half of ids."""
        titles, texts = ([text or "" for text in column.to_pylist()] for column in batch.columns)
        joined = [" ".join(filter(None, pair)) for pair in zip(titles, texts, strict=True)]
        ids = [np.empty(0, self.dtype)]
        lengths = np.zeros((len(titles), 2), np.int64)
        encoded = self.backend.encode_batch(joined, add_special_tokens=False)
        for row, (title, encoding) in enumerate(zip(titles, encoded, strict=True)):
            count = len(encoding.ids)
            places = np.fromiter((begin for begin, _ in encoding.offsets), np.int64, count)
            words = np.array(encoding.word_ids, np.int64)
            of_title = np.count_nonzero(places < len(title))
            continues = np.zeros(count, bool)
            continues[1:] = words[1:] == words[:-1]
            continues[of_title : of_title + 1] = False
            ids.append(
                (np.array(encoding.ids, np.int64) + self.pieces * continues).astype(self.dtype)
            )
            lengths[row] = of_title, count - of_title
        return np.concatenate(ids), lengths.ravel()
