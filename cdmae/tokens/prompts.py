"""The word-pieces of prompts, which precede every query or every passage of a retriever."""

from __future__ import annotations

from pathlib import Path

from cdmae.errors import InputError
from cdmae.fields import show
from cdmae.tokens.vocabulary import read_backend

FRAME = 2  # [CLS] and [SEP] around a text
PROBES = ("a", "The 1", "9")  # texts that are appended to a prompt to test it


def read_prompt(text: str, tokenizer: Path | str) -> tuple[int, ...]:
    """Tokenise a prompt with the tokenizer in a folder.

    Here, texts are tokenised without their prompt. Other libraries tokenise both together. Raises
    `InputError` if the two results differ for this prompt.
    """
    backend = read_backend(tokenizer)
    found = set()
    for probe in PROBES:
        own = backend.encode(probe, add_special_tokens=False).ids
        both = backend.encode(text + probe, add_special_tokens=False)
        end = len(both.ids) - len(own)
        words = both.word_ids[max(0, end - 1) : end + 1]
        apart = both.ids[end:] == own and len(set(words)) == 2
        found.add(tuple(both.ids[:end]) if apart else ())
    if len(found) > 1 or () in found:
        raise InputError(
            f"the tokenizer in {tokenizer} joins the end of the prompt {show(text)} to the "
            "first word of a text; expected a prompt that ends with a line break, or, for "
            "tokenizers like BERT's, with a space or a punctuation mark"
        )
    return found.pop()


def room(prompt: int, length: int) -> int:
    """Return how many word-pieces of a text remain after a prompt of `prompt` word-pieces."""
    return length - FRAME - prompt
