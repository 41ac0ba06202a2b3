"""Word-pieces and special tokens of a tokenizer's folder, read without importing transformers."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from cdmae.config import pretrained
from cdmae.errors import InputError, cause
from cdmae.files import read_json

if TYPE_CHECKING:
    from tokenizers import Tokenizer

SPECIALS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]  # ids 0 to 4 of a tokenizer trained here


@dataclass(frozen=True)
class Vocabulary:
    """What masking and counting must know of a tokenizer; V word-pieces.

    special: bool [V], the tokens that are never masked; ordinary: int32 [.], the ids that may
    replace a masked one (neither special nor ``[unused...]``); word_starts: bool [V], whether a
    word-piece begins a word; separators: how many stand between the two texts of a pair; second:
    the type of the second one's tokens.

    doubled: a tokenizer whose pieces do not tell by themselves whether they begin a word ("mail" of
    "mail" and of "e-mail" in byte-level BPE). Each of its pieces has two ids here, its own where it
    begins a word, and that plus V / 2 where it continues one. So an id tells what a word is,
    whatever the tokenizer; models read `of_model`.
    """

    size: int
    pad_id: int
    cls_id: int
    sep_id: int
    mask_id: int
    special: np.ndarray
    ordinary: np.ndarray
    word_starts: np.ndarray
    separators: int = 1
    second: int = 1
    doubled: bool = False

    @property
    def pieces(self) -> int:
        """Return how many ids a model must know."""
        return self.size // 2 if self.doubled else self.size

    def of_model(self, ids: np.ndarray) -> np.ndarray:
        """Return the tokenizer's own ids of some word-pieces, in the same shape."""
        return ids % self.pieces if self.doubled else ids

    @classmethod
    def read(cls, folder: Path | str) -> Vocabulary:
        """Read it from a tokenizer's folder."""
        tokenizer = read_backend(folder)
        pieces = _pieces(tokenizer)
        named = special_tokens(folder)
        ids = {
            f"{name}_id": tokenizer.token_to_id(named.get(f"{name}_token", ""))
            for name in ("pad", "mask")
        }
        if lacking := [name[:-3] for name, number in ids.items() if number is None]:
            raise InputError(
                f"the tokenizer in {folder} names no {lacking[0]}_token in its "
                "tokenizer_config.json; allowed: the tokenizer of a masked language model"
            )
        special = np.zeros(len(pieces), dtype=bool)
        special[
            [
                index
                for index, token in tokenizer.get_added_tokens_decoder().items()
                if token.special
            ]
        ] = True
        special[[index for index, piece in enumerate(pieces) if piece in named.values()]] = True
        unused = np.array(
            [not piece or re.fullmatch(r"\[unused\d+\]", piece) is not None for piece in pieces]
        )
        doubled = not is_bert(json.loads(tokenizer.to_str()))
        return cls(
            size=len(pieces) << doubled,
            **ids,
            **_frame(tokenizer, folder),
            special=np.tile(special, 1 + doubled),
            ordinary=np.flatnonzero(~special & ~unused).astype(np.int32),
            word_starts=np.array(
                [True] * len(pieces) + [False] * len(pieces)
                if doubled
                else [not piece.startswith("##") for piece in pieces]
            ),
            doubled=doubled,
        )


def special_tokens(folder: Path | str) -> dict[str, str]:
    """Return a tokenizer's special tokens by role, such as ``{"mask_token": "<mask>"}``."""
    path = Path(folder) / "tokenizer_config.json"
    options = read_json(path)
    if not isinstance(options, dict):
        raise InputError(
            f"{path} holds no JSON object; allowed: the tokenizer of a masked language model"
        )
    named = {key: value for key, value in options.items() if key.endswith("_token") and value}
    tokens = {
        key: value["content"] if isinstance(value, dict) else value for key, value in named.items()
    }
    return {key: value for key, value in tokens.items() if isinstance(value, str)}


def _frame(tokenizer: Tokenizer, folder: Path | str) -> dict[str, int]:
    """Return the ids of the special tokens around a text, and the separators within a pair."""
    empty = [tokenizer.encode("", add_special_tokens=False) for _ in range(2)]
    framed = [tokenizer.post_process(empty[0], second, True) for second in (None, empty[1])]
    single, pair = (encoding.ids for encoding in framed)
    if (
        len(single) != 2
        or pair[:1] != single[:1]
        or len(pair) not in (3, 4)
        or set(pair[1:]) != {single[1]}
    ):
        raise InputError(
            f"the tokenizer in {folder} puts {len(single)} special tokens around a text and "
            f"{len(pair)} around a pair; allowed: one before it, one behind it, and one or two of "
            "the latter between two texts"
        )
    second = framed[1].type_ids[-1]
    return {"cls_id": single[0], "sep_id": single[1], "separators": len(pair) - 2, "second": second}


def read_pieces(folder: Path | str) -> list[str]:
    """Return the word-pieces by id (see `Vocabulary`) as text, continuations with ## in front."""
    tokenizer = read_backend(folder)
    pieces = _pieces(tokenizer)
    if is_bert(json.loads(tokenizer.to_str())):
        return pieces
    texts = [
        tokenizer.decoder.decode([piece]).strip() if tokenizer.decoder else piece
        for piece in pieces
    ]
    return [*texts, *(f"##{text}" for text in texts)]


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
        raise InputError(f"{folder} holds no tokenizer.json; make it with the rule tokenizer")
    check(read_json(path), folder)
    try:
        tokenizer = Tokenizer.from_file(str(path))
    except Exception as error:  # the library raises nothing narrower
        raise InputError(f"{path} cannot be read as a tokenizer: {cause(error)}") from None
    tokenizer.no_truncation()
    tokenizer.no_padding()
    return tokenizer


def is_bert(parts: dict[str, Any]) -> bool:
    """Return whether a tokenizer is BERT's WordPiece; parts: its ``tokenizer.json``."""
    types = [
        pretrained.part(parts, name).get("type")
        for name in ("model", "normalizer", "pre_tokenizer")
    ]
    return types == ["WordPiece", "BertNormalizer", "BertPreTokenizer"]


def check(parts: dict[str, Any], folder: Path | str) -> None:
    """Raise `InputError` for a tokenizer without word boundaries; parts: its ``tokenizer.json``."""
    pretrained.check_tokenizer(parts, f"the tokenizer in {folder}")
