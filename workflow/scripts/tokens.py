"""A collection in word-pieces."""

from pathlib import Path

from cdmae import tokens
from cdmae.command import command
from cdmae.files.collections import stream_passages


@command
def main(*, tokenizer: Path, collection: Path, output: Path, threads: int = 1):
    """Tokenise the titles and texts of `collection`, once and for all."""
    tokens.tokenise_to(output, stream_passages(collection, ["title", "text"]), tokenizer, threads)


if __name__ == "__main__":
    main()
