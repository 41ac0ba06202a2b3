"""What a tokenizer's folder says: its word-pieces, its special tokens. Transformers, slow to import, is not needed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cdmae.errors import InputError
from cdmae.files import read_json

if TYPE_CHECKING:
    from tokenizers import Tokenizer

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]  # ids 0 to 4 of a tokenizer trained here
BLANKS = " \t\n\r"  # where every tokenizer cuts a text


@dataclass(frozen=True)
class Vocabulary:
    """What masking and counting must know of a tokenizer; V word-pieces.

    special: bool [V], the tokens that are never masked; ordinary: int32 [.], the ids that may replace a masked one
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
        """Read it from a tokenizer's folder."""
        tokenizer = read_backend(folder)
        pieces = _pieces(tokenizer)
        special = np.zeros(len(pieces), dtype=bool)
        special[[index for index, token in tokenizer.get_added_tokens_decoder().items() if token.special]] = True
        special[[index for index, piece in enumerate(pieces) if piece in SPECIALS]] = True
        ids = {f"{name}_id": tokenizer.token_to_id(f"[{name.upper()}]") for name in ("pad", "cls", "sep", "mask")}
        if lacking := [name[:-3].upper() for name, number in ids.items() if number is None]:
            raise InputError(
                f"the tokenizer in {folder} has no [{lacking[0]}]; only BERT's WordPiece tokenizers are supported"
            )
        unused = np.array([not piece or re.fullmatch(r"\[unused\d+\]", piece) is not None for piece in pieces])
        return cls(
            size=len(pieces),
            **ids,
            special=special,
            ordinary=np.flatnonzero(~special & ~unused).astype(np.int32),
            word_starts=np.array([not piece.startswith("##") for piece in pieces]),
        )


def read_pieces(folder: Path | str) -> list[str]:
    """Return the word-pieces by id, as the vocabulary spells them."""
    return _pieces(read_backend(folder))


def _pieces(tokenizer: Tokenizer) -> list[str]:
    by_id = {index: piece for piece, index in tokenizer.get_vocab(with_added_tokens=True).items()}
    return [by_id.get(index, "") for index in range(max(by_id) + 1)]


def read_backend(folder: Path | str) -> Tokenizer:
    """Load a folder's tokenizer, which neither cuts nor pads; raises `InputError` if it is not BERT's WordPiece."""
    from tokenizers import Tokenizer

    path = Path(folder) / "tokenizer.json"
    if not path.exists():
        raise InputError(f"{folder} holds no tokenizer.json; make it with the rule tokenizer")
    check(read_json(path), folder)
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def check(parts: dict[str, Any], folder: Path | str) -> None:
    """Raise `InputError` for a tokenizer, as it stands in ``tokenizer.json``, that is not BERT's WordPiece."""
    types = [(parts.get(name) or {}).get("type") for name in ("model", "normalizer", "pre_tokenizer")]
    if types != ["WordPiece", "BertNormalizer", "BertPreTokenizer"]:
        raise InputError(
            f"the tokenizer in {folder} is made of {types}; only BERT's WordPiece tokenizers are supported"
        )
    for added in parts.get("added_tokens", []):
        if any(letter in BLANKS for letter in added["content"]):
            raise InputError(
                f"the tokenizer in {folder} adds the token {added['content']!r}; tokens with blanks are not supported"
            )
