"""Tokenise each collection once with each Hugging Face tokenizer.

Titles and texts are joined by a space, as by users of the trained model. Byte-level BPE and Unigram
tokenizers define their own word boundaries (`Vocabulary.doubled`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from cdmae.collections.store import stream_passages
from cdmae.config import pretrained
from cdmae.errors import InputError, cause
from cdmae.languages import scripts
from cdmae.log import say
from cdmae.tokens.corpus import Tokens, read_tokens, stream_tokens
from cdmae.tokens.vocabulary import SPECIALS, Vocabulary, read_backend

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerBase

# Single characters in a trained vocabulary: all of a text with up to 1,000, as in BERT's, and
# otherwise the most frequent that cover this share of a text, as in SentencePiece.
ALPHABET = 1000
COVERAGE = 0.9995
# maximum letters of a word in training, whose time grows with their square
LONGEST = 1000
# in scripts whose clauses have no spaces, about two words, which are the longest word-pieces
LONGEST_UNSPACED = 10
ROWS_AT_ONCE = 1024  # passages per batch, which tokenizers divides among its threads


def train_tokenizer(
    texts: Iterable[str], vocabulary: int, strip_accents: bool = True
) -> PreTrainedTokenizerBase:
    """Train an uncased WordPiece tokenizer of at most `vocabulary` pieces, normalised like BERT.

    strip_accents: of Latin texts; other scripts keep theirs, without which words become equal.
    `texts` are read several times. The same texts give the same vocabulary in every process. Short
    texts give a smaller vocabulary.
    """
    from transformers import BertTokenizer, PreTrainedTokenizerFast

    language = scripts.language_of(texts)
    strips = strip_accents and scripts.is_latin(texts)
    has_clauses = language in scripts.BY_CHARACTERS
    longest = LONGEST_UNSPACED if has_clauses else LONGEST
    pieces = train_pieces(texts, vocabulary, strips, longest)
    tokenizer = BertTokenizer(vocab=pieces, strip_accents=None if strips else False)
    if has_clauses:
        # to BertTokenizer, a clause of more than 100 characters is unknown
        backend = tokenizer.backend_tokenizer
        backend.model.max_input_chars_per_word = LONGEST
        special = tokenizer.special_tokens_map
        tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, **special)
    return tokenizer


def train_pieces(
    texts: Iterable[str],
    vocabulary: int,
    strip_accents: bool = True,
    longest: int = LONGEST,
) -> dict[str, int]:
    """Train a tokenizer on `texts`; return its word-pieces and their ids.

    longest: the number of letters at which words are cut.
    """
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(strip_accents=strip_accents)
    words = [pre_tokenizers.BertPreTokenizer(), pre_tokenizers.FixedLength(longest)]
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(words)
    letters = _alphabet(tokenizer, texts)
    # The trainer numbers continuing characters in the order of a randomly seeded hash map, and
    # breaks ties by number; naming all of them beforehand makes it repeatable.
    continuing = [f"##{letter}" for letter in letters if _continues(tokenizer, letter)]
    fixed = [*SPECIALS, *letters, *continuing]
    if len(fixed) > vocabulary:
        raise InputError(
            f"vocabulary is {vocabulary}, but the single characters of this text need "
            f"{len(fixed)}; expected a larger vocabulary"
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
    ids = tokenizer.get_vocab()
    return {piece: ids[piece] for piece in sorted(ids, key=ids.__getitem__)}


def _alphabet(tokenizer: Tokenizer, texts: Iterable[str]) -> list[str]:
    """Return the characters of the vocabulary, normalised and sorted."""
    raw: Counter[str] = Counter()
    for text in texts:
        raw.update(text)
    counts: Counter[str] = Counter()
    for letter, count in raw.items():
        for normal in tokenizer.normalizer.normalize_str(letter).replace(" ", ""):
            counts[normal] += count
    by_frequency = sorted(counts, key=lambda letter: (-counts[letter], letter))
    covered = np.cumsum([counts[letter] for letter in by_frequency])
    needed = int(np.searchsorted(covered, COVERAGE * counts.total())) + 1
    return sorted(by_frequency[: max(ALPHABET, needed)])


def _continues(tokenizer: Tokenizer, letter: str) -> bool:
    """Return whether a letter can continue a word; punctuation and Chinese characters cannot."""
    text = tokenizer.normalizer.normalize_str("a" + letter)
    return len(tokenizer.pre_tokenizer.pre_tokenize_str(text)) == 1


def load_tokenizer(folder: Path | str) -> PreTrainedTokenizerBase:
    """Load the tokenizer of a folder or the hub.

    Raises `InputError` for a folder without one.
    """
    from transformers import AutoTokenizer

    try:
        name, revision = pretrained.divided(str(folder))
        tokenizer = AutoTokenizer.from_pretrained(name, revision=revision, trust_remote_code=False)
    except Exception as error:  # the libraries may raise any exception for third-party files
        raise InputError(
            f"{folder} holds no tokenizer that transformers can load: {cause(error)}"
        ) from None
    # Without files, transformers makes a tokenizer with special tokens only.
    if set(tokenizer.get_vocab()) <= set(tokenizer.all_special_tokens):
        raise InputError(
            f"{folder} holds no tokenizer; expected one with the word-pieces of a tokenizer.json "
            "or vocab.txt"
        )
    return tokenizer


@dataclass(frozen=True)
class Texts:
    """Iterate over a collection's titles and texts; each iteration reads them from disk."""

    collection: Path

    def __iter__(self) -> Iterator[str]:
        """Yield each passage's title and text; empty ones are left out."""
        for passages in stream_passages(self.collection, ["title", "text"]):
            pairs = zip(passages["title"].to_pylist(), passages["text"].to_pylist(), strict=True)
            yield from filter(None, chain.from_iterable(pairs))


# --- tokenising a collection ----------------------------------------------------------------------


def tokenise_to(output: Path | str, passages: Path, tokenizer: Path) -> None:
    """Tokenise a collection into the files of `stream_tokens`.

    passages: the file in the folder of the collection.
    """
    tokeniser = Tokeniser(tokenizer)
    batches = tokeniser.stream(stream_passages(passages.parent, ["title", "text"]))
    stream_tokens(output, batches, tokeniser.dtype, tokeniser.vocabulary.word_starts)
    ids = read_tokens(output).ids
    share = tokeniser.vocabulary.unknown(ids)
    say(f"{len(ids):,} word-pieces, of which {share:.2%} are unknown characters")


class Tokeniser:
    """A tokenizer that is loaded once, for any number of passages.

    The ids are equal to the Hugging Face tokenizer's for the joined text without special tokens. As
    there, a special token spelt out in a text, such as ``[MASK]``, becomes that special token.
    """

    def __init__(self, tokenizer: Path | str) -> None:
        """Load the tokenizer in a folder."""
        self.vocabulary = Vocabulary.read(tokenizer)
        self.dtype = np.uint16 if self.vocabulary.size <= 1 << 16 else np.uint32
        self.backend = read_backend(tokenizer)

    def tokens(self, passages: pa.Table) -> Tokens:
        """Tokenise passages (columns title and text)."""
        ids = [np.empty(0, self.dtype)]
        lengths = [np.empty(0, np.int64)]
        for batch_ids, batch_lengths in self.stream([passages]):
            ids.append(batch_ids)
            lengths.append(batch_lengths)
        return Tokens.of(np.concatenate(ids), np.concatenate(lengths), self.vocabulary.word_starts)

    def stream(self, passages: Iterable[pa.Table]) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield each batch's ids and segment lengths (title, text, title, text, ...)."""
        tables = (table.select(["title", "text"]) for table in passages)
        batches = chain.from_iterable(table.to_batches(ROWS_AT_ONCE) for table in tables)
        yield from map(self._batch, batches)

    def _batch(self, batch: pa.RecordBatch) -> tuple[np.ndarray, np.ndarray]:
        """Tokenise a batch of passages; titles and texts are joined by a space."""
        titles, texts = (column.to_pylist() for column in batch.columns)
        pairs = zip(titles, texts, strict=True)
        joined = [" ".join(filter(None, pair)) for pair in pairs]
        ids = [np.empty(0, self.dtype)]
        lengths = np.zeros((len(joined), 2), np.int64)
        encoded = self.backend.encode_batch(joined, add_special_tokens=False)
        for row, encoding in enumerate(encoded):
            pieces = np.array(encoding.ids, np.int64)
            begins = np.array([begin for begin, _ in encoding.offsets], np.int64)
            of_title = np.count_nonzero(begins < len(titles[row] or ""))
            if self.vocabulary.doubled:  # continuing word-pieces get the upper half of ids
                words = np.array(encoding.word_ids, np.int64)
                continues = np.zeros(len(pieces), bool)
                continues[1:] = words[1:] == words[:-1]
                continues[of_title : of_title + 1] = False  # the text begins with a word
                pieces += self.vocabulary.pieces * continues
            ids.append(pieces.astype(self.dtype))
            lengths[row] = of_title, len(pieces) - of_title
        return np.concatenate(ids), lengths.ravel()
