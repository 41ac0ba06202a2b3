"""Encode a collection with a retriever."""

from pathlib import Path

from cdmae.cli import command
from cdmae.retrieval import vectors


@command
def main(*, model: Path, tokens: Path, output: Path, length: int = 0, threads: int = 1):
    """Write a retriever's vectors of a collection, its passages cut at `length`, or at the model's own."""
    vectors.encode_passages(model, tokens, output, threads, length)


if __name__ == "__main__":
    main()
