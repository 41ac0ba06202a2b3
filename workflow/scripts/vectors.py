"""Encode a collection with a retriever."""

from pathlib import Path

from cdmae import inference
from cdmae.command import command


@command
def main(*, model: Path, tokens: Path, output: Path, threads: int = 1):
    """Write a retriever's vectors of a collection."""
    inference.encode_passages(model, tokens, output, threads)


if __name__ == "__main__":
    main()
