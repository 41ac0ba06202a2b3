"""Tokenise a collection."""

from pathlib import Path

from cdmae.cli import run_command
from cdmae.collections.store import stream_passages
from cdmae.tokens import tokenise


def main(*, tokenizer: Path, collection: Path, output: Path, threads: int = 1):
    """Tokenise the titles and texts of `collection`, once and for all."""
    tokenise.tokenise_to(output, stream_passages(collection, ["title", "text"]), tokenizer, threads)


if __name__ == "__main__":
    run_command(main)
