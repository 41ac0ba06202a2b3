"""Tokenise a collection into word-pieces."""

from pathlib import Path

from cdmae.cli import run_command
from cdmae.collections.store import count_passages, stream_passages
from cdmae.ranges import WHOLE, Part
from cdmae.tokens import tokenise


def main(*, tokenizer: Path, collection: Path, output: Path, threads: int = 1, part: str = WHOLE):
    """Tokenise the titles and texts of `collection`, or of a part of it, such as 3-of-7."""
    first, last = Part.read(part).of(count_passages(collection))
    passages = stream_passages(collection, ["title", "text"], first=first, last=last)
    tokenise.tokenise_to(output, passages, tokenizer, threads)


if __name__ == "__main__":
    run_command(main)
