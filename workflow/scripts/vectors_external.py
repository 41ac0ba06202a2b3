"""A foreign retriever's vectors of a collection."""

from pathlib import Path

from cdmae.cli import command
from cdmae.retrieval import external


@command
def main(*, model: str, collection: Path, output: Path, passage_length: int = 0):
    """Encode the passages of `collection`, cut at `passage_length` word-pieces (0: at the model's own length)."""
    external.encode_passages(model, collection, output, passage_length)


if __name__ == "__main__":
    main()
