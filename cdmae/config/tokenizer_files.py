"""Check ``tokenizer.json``, the file of a third-party tokenizer, by its JSON alone."""

from __future__ import annotations

from typing import Any

from cdmae.errors import InputError
from cdmae.fields import show

PIECES = ("WordPiece", "BPE", "Unigram")  # types of tokenizers, in tokenizer.json
MOST_PIECES = 2**24  # the most entries of a vocabulary


def check_tokenizer(parts: dict[str, Any], what: str, known: int | None = None) -> None:
    """Refuse a ``tokenizer.json`` that does not split text into words or adds no special tokens.

    what: the subject of messages. known: the number of the model's word-pieces, or None.
    """
    if not isinstance(parts, dict):
        raise InputError(f"{what} is not a JSON object")
    model = part(parts, "model")
    kind = model.get("type")
    if kind not in PIECES:
        raise InputError(f"{what} is of the type {show(kind)}; allowed: {', '.join(PIECES)}")
    if not parts.get("pre_tokenizer"):
        raise InputError(
            f"{what} does not divide texts into words: it has no pre_tokenizer; allowed: a "
            "tokenizer with a pre_tokenizer"
        )
    try:
        framed = _frames(part(parts, "post_processor"))
    except RecursionError:
        framed = False
    if not framed:
        raise InputError(
            f"{what} does not put one special token before and one after a text; allowed: a "
            "tokenizer that does"
        )
    check_ids(parts, what, known)


def _is_token(token: Any) -> bool:
    """Return whether an added token has content."""
    return isinstance(token, dict) and isinstance(token.get("content"), str)


def check_ids(parts: dict[str, Any], what: str, known: int | None) -> None:
    """Refuse ids of word-pieces that are outside the model's vocabulary.

    parts: a ``tokenizer.json``. what, known: see `check_tokenizer`.
    """
    model = part(parts, "model")
    added = parts.get("added_tokens", [])
    if not isinstance(added, list) or not all(map(_is_token, added)):
        raise InputError(
            f"{what} has added_tokens that are not a list of tokens with an id and content each"
        )
    listed = model.get("type") == "Unigram"  # in a list, the ids are the indices
    vocabulary = model.get("vocab", [] if listed else {})
    if not isinstance(vocabulary, list if listed else dict):
        raise InputError(f"{what} has a vocab that is not {'a list' if listed else 'an object'}")
    ids = [token.get("id") for token in added]
    ids += [max(0, len(vocabulary) - 1)] if listed else vocabulary.values()
    most = known or MOST_PIECES
    for number in ids:
        if type(number) is not int or not 0 <= number < most:
            owner = ", the word-pieces of its model" if known else ""
            raise InputError(
                f"{what} has the id {show(number)} for a word-piece; allowed: from 0 to "
                f"{most - 1:,}{owner}"
            )


def part(parts: dict[str, Any], name: str) -> dict[str, Any]:
    """Return a part of a ``tokenizer.json``; an empty object if it is missing or not an object."""
    found = parts.get(name)
    return found if isinstance(found, dict) else {}


def _frames(processor: Any) -> bool:
    """Return whether a post-processor puts a special token before and after a text."""
    if not isinstance(processor, dict):
        return False
    kind = processor.get("type")
    if kind == "Sequence":
        processors = processor.get("processors")
        return isinstance(processors, list) and any(map(_frames, processors))
    if kind == "TemplateProcessing":
        single = processor.get("single")
        if not isinstance(single, list):
            return False
        kinds = [list(piece)[:1] if isinstance(piece, dict) else [] for piece in single]
        return kinds == [["SpecialToken"], ["Sequence"], ["SpecialToken"]]
    return kind in ("BertProcessing", "RobertaProcessing")
