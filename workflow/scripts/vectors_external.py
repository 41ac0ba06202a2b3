"""A foreign retriever's vectors of a collection."""

from pathlib import Path

from cdmae.cli import command
from cdmae.retrieval import external


@command
def main(*, model: str, collection: Path, output: Path, query_length: int = 0, passage_length: int = 0):
    """Encode the passages of `collection`; `query_length` is taken for the sake of symmetry and plays no part."""
    external.encode_passages(model, collection, output, passage_length)


if __name__ == "__main__":
    main()
