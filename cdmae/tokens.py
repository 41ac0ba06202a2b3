"""From text to word-pieces: one tokenizer, one tokenisation, in one place.

Text is split where every BERT tokenizer splits it first, at blanks; each distinct chunk between two blanks goes
through the tokenizer once, and its word-pieces are copied to wherever the chunk occurs. The ids are those of the
Hugging Face tokenizer on the whole text, bit for bit, at several times its speed: natural text repeats its words.
"""

from __future__ import annotations

import json
import re
from array import array
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from cdmae import files
from cdmae.compiled import compiled
from cdmae.errors import InputError

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from transformers import PreTrainedTokenizerBase

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]  # ids 0 to 4 of a tokenizer trained here
BLANKS = " \t\n\r"  # other white space is no blank to BERT: it removes some control characters before it splits
ALPHABET = 1000  # single characters that a trained vocabulary keeps at most, the commonest, as BERT's has about 1,000
PASSAGES_AT_ONCE = 1 << 15
REMEMBERED = 1 << 20  # distinct chunks kept between batches: bounds memory, changes no id


@dataclass(frozen=True)
class Vocabulary:
    """What masking and counting must know of a tokenizer; V word-pieces.

    special: bool [V], the tokens that are never masked; ordinary: int64 [.], the ids that may replace a masked one
    (neither special nor ``[unused...]``); word_starts: bool [V], whether a word-piece begins a word.
    """

    size: int
    pad_id: int
    cls_id: int
    sep_id: int
    mask_id: int
    special: np.ndarray
    ordinary: np.ndarray
    word_starts: np.ndarray

    @classmethod
    def read(cls, folder: Path | str) -> Vocabulary:
        """Read it from a tokenizer's folder, without transformers (three seconds of imports)."""
        tokenizer = _read_backend(folder)
        pieces = _pieces(tokenizer)
        special = np.zeros(len(pieces), dtype=bool)
        special[[index for index, each in tokenizer.get_added_tokens_decoder().items() if each.special]] = True
        special[[index for index, piece in enumerate(pieces) if piece in SPECIALS]] = True
        unused = np.array([not piece or re.fullmatch(r"\[unused\d+\]", piece) is not None for piece in pieces])
        return cls(
            size=len(pieces),
            **{f"{name}_id": _id(tokenizer, f"[{name.upper()}]", folder) for name in ("pad", "cls", "sep", "mask")},
            special=special,
            ordinary=np.flatnonzero(~special & ~unused),
            word_starts=np.array([not piece.startswith("##") for piece in pieces]),
        )


def read_pieces(folder: Path | str) -> list[str]:
    """The word-pieces by id, as the vocabulary spells them."""
    return _pieces(_read_backend(folder))


def _pieces(tokenizer: Tokenizer) -> list[str]:
    by_id = {index: piece for piece, index in tokenizer.get_vocab(with_added_tokens=True).items()}
    return [by_id.get(index, "") for index in range(max(by_id) + 1)]


def _id(tokenizer: Tokenizer, piece: str, folder: Path | str) -> int:
    found = tokenizer.token_to_id(piece)
    if found is None:
        raise InputError(f"the tokenizer in {folder} has no {piece}; only BERT's WordPiece tokenizers are supported")
    return found


def train_tokenizer(texts: Sequence[str], vocabulary: int) -> PreTrainedTokenizerBase:
    """Train an uncased WordPiece tokenizer with BERT's normalisation; `vocabulary` bounds the number of word-pieces.

    The same texts give the same vocabulary in every process. Little text gives a smaller one.
    """
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers
    from transformers import BertTokenizer

    tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    letters = _alphabet(tokenizer, texts)
    # The trainer numbers continuing characters as it meets them in a randomly seeded hash map, and breaks ties by
    # number; naming all of them beforehand makes it repeatable.
    fixed = [*SPECIALS, *letters, *(f"##{letter}" for letter in letters if _continues(tokenizer, letter))]
    if len(fixed) > vocabulary:
        raise InputError(f"vocabulary is {vocabulary}; the single characters of this text alone need {len(fixed)}")
    trainer = trainers.WordPieceTrainer(
        vocab_size=vocabulary,
        special_tokens=fixed,
        initial_alphabet=letters,
        limit_alphabet=len(letters),
        min_frequency=2,
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return BertTokenizer(vocab=dict(sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])))


def _alphabet(tokenizer: Tokenizer, texts: Sequence[str]) -> list[str]:
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
    return len(tokenizer.pre_tokenizer.pre_tokenize_str(tokenizer.normalizer.normalize_str("a" + letter))) == 1


def load_tokenizer(folder: Path | str) -> PreTrainedTokenizerBase:
    """The tokenizer of a folder or of a name at the hub; raises `InputError` for one that is not BERT's WordPiece."""
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(str(folder))
    except (OSError, ValueError) as error:
        raise InputError(
            f"{folder} holds no tokenizer that transformers can load: {str(error).splitlines()[0]}"
        ) from None
    backend = getattr(tokenizer, "backend_tokenizer", None)
    _check(json.loads(backend.to_str()) if backend is not None else {}, folder)
    return tokenizer


def _read_backend(folder: Path | str) -> Tokenizer:
    from tokenizers import Tokenizer

    path = Path(folder) / "tokenizer.json"
    if not path.exists():
        raise InputError(f"{folder} holds no tokenizer.json; make it with the rule tokenizer")
    _check(files.read_json(path), folder)
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def _check(parts: dict[str, Any], folder: Path | str) -> None:
    found = [(parts.get(name) or {}).get("type") for name in ("model", "normalizer", "pre_tokenizer")]
    if found != ["WordPiece", "BertNormalizer", "BertPreTokenizer"]:
        raise InputError(
            f"the tokenizer in {folder} is made of {found}; only BERT's WordPiece tokenizers are supported"
        )
    for added in parts.get("added_tokens", []):
        if any(letter in BLANKS for letter in added["content"]):
            raise InputError(
                f"the tokenizer in {folder} adds the token {added['content']!r}; tokens with blanks are not supported"
            )


def texts(passages: pa.Table) -> list[str]:
    """What a tokenizer is trained on: the titles and the texts of a collection."""
    return [text for name in ("title", "text") for text in passages[name].to_pylist() if text]


# --- tokenising a collection -----------------------------------------------------------------------------------------


def tokenise(passages: pa.Table, tokenizer: Path | str, threads: int) -> files.Tokens:
    """The word-pieces of `passages` (columns title and text) by the tokenizer in the folder `tokenizer`.

    The ids are those that the Hugging Face tokenizer gives for the title and for the text without special tokens. A
    special token spelt out in a text, such as ``[MASK]``, becomes that special token there, and so it does here.
    """
    backend = _read_backend(tokenizer)
    vocabulary = Vocabulary.read(tokenizer)
    chunks = _Chunks(backend)
    batches = passages.select(["title", "text"]).to_batches(max_chunksize=PASSAGES_AT_ONCE)
    kind = np.uint16 if vocabulary.size <= 1 << 16 else np.uint32
    with ThreadPoolExecutor(max(1, threads)) as pool:
        done = list(pool.map(lambda batch: chunks.tokenise(batch, kind), batches))
    ids = np.concatenate([np.empty(0, kind), *(pieces for pieces, _ in done)])
    lengths = np.concatenate([np.empty(0, np.int64), *(each for _, each in done)])  # title, text, title, text, ...
    edges = np.concatenate([[0], np.cumsum(lengths)])
    return files.Tokens(ids, edges[::2], edges[1::2], vocabulary.word_starts)


class _Chunks:
    """The word-pieces of the chunks met so far."""

    def __init__(self, backend: Tokenizer) -> None:
        self.backend = backend
        self.known: dict[bytes, bytes] = {}

    def tokenise(self, batch: pa.RecordBatch, kind: type) -> tuple[np.ndarray, np.ndarray]:
        """The ids of a batch, and the lengths of its segments: title, text, title, text, ..."""
        data, offsets = _segments(batch)
        starts, ends, chunk_of, chunks_in = _split(data, offsets)
        pieces = self._look_up([data[a:b].tobytes() for a, b in zip(starts.tolist(), ends.tolist(), strict=True)])
        flat = np.frombuffer(b"".join(pieces), np.uint32)
        edges = np.zeros(len(pieces) + 1, np.int64)
        np.cumsum([len(each) >> 2 for each in pieces], out=edges[1:])
        lengths = _lengths(chunk_of, chunks_in, edges)
        ids = np.empty(lengths.sum(), kind)
        _gather(chunk_of, edges, flat, ids)
        return ids, lengths

    def _look_up(self, chunks: list[bytes]) -> list[bytes]:
        found = [self.known.get(chunk) for chunk in chunks]
        new = [index for index, pieces in enumerate(found) if pieces is None]
        texts = [chunks[index].decode() for index in new]
        for index, encoded in zip(new, self.backend.encode_batch_fast(texts, add_special_tokens=False), strict=True):
            found[index] = array("I", encoded.ids).tobytes()
        if len(self.known) < REMEMBERED:
            self.known.update((chunks[index], found[index]) for index in new)
        return found


def _segments(batch: pa.RecordBatch) -> tuple[np.ndarray, np.ndarray]:
    """The UTF-8 bytes of titles and texts in turn, and where each begins and ends: uint8 [.], int64 [2 P + 1]."""
    columns = [column.cast(pa.large_string()).fill_null("") for column in batch.columns]
    turns = np.arange(2 * len(batch)).reshape(2, -1).T.ravel()
    joined = pa.concat_arrays(columns).take(pa.array(turns))
    offsets = np.frombuffer(joined.buffers()[1], np.int64)[joined.offset : joined.offset + len(joined) + 1]
    data = joined.buffers()[2]
    return np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8), offsets


@compiled
def _split(data, offsets):  # noqa: ANN001, ANN202
    """Split every segment at blanks and give equal chunks one number, in the order in which they are met.

    Returns the place of each distinct chunk in `data`, the number of each chunk met, and the chunks per segment.
    """
    segments = len(offsets) - 1
    chunks_in = np.zeros(segments, np.int64)
    for segment in range(segments):
        inside = False
        for place in range(offsets[segment], offsets[segment + 1]):
            letter = data[place]
            blank = letter == 32 or letter == 9 or letter == 10 or letter == 13
            if not blank and not inside:
                chunks_in[segment] += 1
            inside = not blank
    total = chunks_in.sum()
    size = 1024
    while size < total * 2:
        size *= 2
    slots = np.full(size, -1, np.int32)
    hashes = np.empty(size, np.uint64)
    starts = np.empty(total, np.int64)
    ends = np.empty(total, np.int64)
    chunk_of = np.empty(total, np.int32)
    distinct = 0
    met = 0
    for segment in range(segments):
        place, last = offsets[segment], offsets[segment + 1]
        while place < last:
            letter = data[place]
            if letter == 32 or letter == 9 or letter == 10 or letter == 13:
                place += 1
                continue
            start = place
            key = np.uint64(14695981039346656037)  # FNV-1a
            while place < last:
                letter = data[place]
                if letter == 32 or letter == 9 or letter == 10 or letter == 13:
                    break
                key = (key ^ np.uint64(letter)) * np.uint64(1099511628211)
                place += 1
            slot = np.int64((key ^ (key >> np.uint64(32))) & np.uint64(size - 1))
            while True:
                number = slots[slot]
                if number < 0:
                    slots[slot] = distinct
                    hashes[slot] = key
                    starts[distinct] = start
                    ends[distinct] = place
                    number = distinct
                    distinct += 1
                    break
                if hashes[slot] == key and ends[number] - starts[number] == place - start:
                    same = True
                    for ahead in range(place - start):
                        if data[starts[number] + ahead] != data[start + ahead]:
                            same = False
                            break
                    if same:
                        break
                slot = (slot + 1) & (size - 1)
            chunk_of[met] = number
            met += 1
    return starts[:distinct].copy(), ends[:distinct].copy(), chunk_of, chunks_in


@compiled
def _lengths(chunk_of, chunks_in, edges):  # noqa: ANN001, ANN202
    lengths = np.zeros(len(chunks_in), np.int64)
    met = 0
    for segment in range(len(chunks_in)):
        for _ in range(chunks_in[segment]):
            lengths[segment] += edges[chunk_of[met] + 1] - edges[chunk_of[met]]
            met += 1
    return lengths


@compiled
def _gather(chunk_of, edges, flat, ids):  # noqa: ANN001, ANN202
    written = 0
    for chunk in chunk_of:
        for place in range(edges[chunk], edges[chunk + 1]):
            ids[written] = flat[place]
            written += 1
