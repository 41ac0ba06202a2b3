"""Read a tokenizer's word-pieces and special tokens without importing transformers."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from cdmae.errors import InputError, cause
from cdmae.files import read_json
from cdmae.languages import scripts

if TYPE_CHECKING:
    from tokenizers import Tokenizer

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]  # ids 0 to 4 of a tokenizer trained here
MOST_UNKNOWN = 0.01  # the share of unknown characters that needs no warning


@dataclass(frozen=True)
class Vocabulary:
    """Hold the properties of a tokenizer that masking and counting need; V is the number of ids.

    special: bool [V], tokens that are never masked. ordinary: int32 [.], ids that may replace a
    masked token (neither special nor ``[unused...]``). word_starts: bool [V], whether a word-piece
    begins a word; in scripts without spaces between words, every word-piece does. unknown_id: the
    id of characters that no word-piece spells, or -1. separators: the number of separator tokens
    between the two texts of a pair. second: the token type of the second text.

    doubled: whether the same piece can both begin and continue a word, such as "mail" in "mail" and
    "e-mail" in byte-level BPE. Each piece then has two ids here: its own id where it begins a word,
    and this id plus V / 2 where it continues a word. Word boundaries therefore follow from the ids
    for every tokenizer. Models read the ids that `of_model` returns.
    """

    size: int
    pad_id: int
    cls_id: int
    sep_id: int
    mask_id: int
    special: np.ndarray
    ordinary: np.ndarray
    word_starts: np.ndarray
    unknown_id: int = -1
    separators: int = 1
    second: int = 1
    doubled: bool = False

    @property
    def pieces(self) -> int:
        """Return the number of ids of the tokenizer itself, which models read."""
        return self.size // 2 if self.doubled else self.size

    def of_model(self, ids: np.ndarray) -> np.ndarray:
        """Return the tokenizer's own ids of word-pieces, in the same shape."""
        return ids % self.pieces if self.doubled else ids

    def unknown(self, ids: np.ndarray) -> float:
        """Return the share of word-pieces that stand for unknown characters."""
        if self.unknown_id < 0 or not len(ids):
            return 0.0
        count = np.count_nonzero(ids == self.unknown_id)
        if self.doubled:
            count += np.count_nonzero(ids == self.unknown_id + self.pieces)
        return count / len(ids)

    def doubts(self, ids: np.ndarray) -> list[str]:
        """Return a warning for the reader of a model that cannot spell the texts with `ids`."""
        share = self.unknown(ids)
        if share <= MOST_UNKNOWN:
            return []
        return [f"{share:.1%} of the passages' word-pieces are characters that it cannot spell"]

    @classmethod
    def read(cls, folder: Path | str) -> Vocabulary:
        """Read the vocabulary of the tokenizer in a folder."""
        tokenizer = read_backend(folder)
        pieces = _pieces(tokenizer)
        named = special_tokens(folder)
        ids = {}
        for name in ("pad", "mask"):
            ids[f"{name}_id"] = tokenizer.token_to_id(named.get(f"{name}_token", ""))
            if ids[f"{name}_id"] is None:
                raise InputError(
                    f"the tokenizer in {folder} names no {name}_token in its "
                    "tokenizer_config.json; expected the tokenizer of a masked language model"
                )
        special = np.array([piece in named.values() for piece in pieces])
        for index, token in tokenizer.get_added_tokens_decoder().items():
            special[index] |= token.special
        is_unused = re.compile(r"(\[unused\d+\])?").fullmatch
        unused = np.array([is_unused(piece) is not None for piece in pieces])
        spelt = _spelt(tokenizer)
        doubled = len(spelt) > len(pieces)
        is_first = np.array([not piece.startswith("##") for piece in spelt])
        is_unspaced = np.array([scripts.is_unspaced(piece.lstrip("#")) for piece in spelt])
        unknown = tokenizer.token_to_id(named.get("unk_token", ""))
        return cls(
            size=len(spelt),
            **ids,
            **_frame(tokenizer, folder),
            special=np.tile(special, 2) if doubled else special,
            ordinary=np.flatnonzero(~special & ~unused).astype(np.int32),
            word_starts=is_first | is_unspaced,
            unknown_id=-1 if unknown is None else unknown,
            doubled=doubled,
        )


def special_tokens(folder: Path | str) -> dict[str, str]:
    """Return a tokenizer's special tokens by role, such as ``{"mask_token": "<mask>"}``."""
    tokens = {}
    for key, value in read_json(Path(folder) / "tokenizer_config.json").items():
        token = value.get("content") if isinstance(value, dict) else value
        if key.endswith("_token") and token and isinstance(token, str):
            tokens[key] = token
    return tokens


def _frame(tokenizer: Tokenizer, folder: Path | str) -> dict[str, int]:
    """Return the ids of the special tokens around a text, and the separators in a pair."""
    single = tokenizer.encode("").ids
    framed_pair = tokenizer.encode("", "")
    pair = framed_pair.ids
    is_single_framed = len(single) == 2
    is_pair_framed = len(pair) in (3, 4) and pair[:1] == single[:1]
    if not (is_single_framed and is_pair_framed and set(pair[1:]) == {single[1]}):
        raise InputError(
            f"the tokenizer in {folder} puts {len(single)} special tokens around a text and "
            f"{len(pair)} around a pair; expected one before it, one after it, and one or two of "
            "the latter between two texts"
        )
    return {
        "cls_id": single[0],
        "sep_id": single[1],
        "separators": len(pair) - 2,
        "second": framed_pair.type_ids[-1],
    }


def read_pieces(folder: Path | str) -> list[str]:
    """Return the word-pieces by id (see `Vocabulary`) as text; continuations begin with ##."""
    return _spelt(read_backend(folder))


def _spelt(tokenizer: Tokenizer) -> list[str]:
    pieces = _pieces(tokenizer)
    if _is_bert(tokenizer):
        return pieces
    if tokenizer.decoder:
        pieces = [tokenizer.decoder.decode([piece]).strip() for piece in pieces]
    return [*pieces, *(f"##{piece}" for piece in pieces)]


def _pieces(tokenizer: Tokenizer) -> list[str]:
    by_id = {index: piece for piece, index in tokenizer.get_vocab(with_added_tokens=True).items()}
    return [by_id.get(index, "") for index in range(max(by_id) + 1)]


def read_backend(folder: Path | str) -> Tokenizer:
    """Load a folder's tokenizer, without truncation and padding.

    Raises `InputError` for a tokenizer without word boundaries.
    """
    from tokenizers import Tokenizer

    path = Path(folder) / "tokenizer.json"
    if not path.exists():
        raise InputError(f"{folder} contains no tokenizer.json; create it with the rule tokenizer")
    if not read_json(path).get("pre_tokenizer"):
        raise InputError(
            f"the tokenizer in {folder} does not divide texts into words: it has no pre_tokenizer; "
            "expected a tokenizer with a pre_tokenizer"
        )
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises no narrower type
        raise InputError(f"{path} cannot be read as a tokenizer: {cause(error)}") from None
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def _is_bert(tokenizer: Tokenizer) -> bool:
    """Return whether a tokenizer is BERT's WordPiece."""
    parts = (tokenizer.model, tokenizer.normalizer, tokenizer.pre_tokenizer)
    names = [type(part).__name__ for part in parts]
    return names == ["WordPiece", "BertNormalizer", "BertPreTokenizer"]
