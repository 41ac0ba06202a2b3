"""An inverted index of a collection."""

from pathlib import Path

from cdmae.cli import command
from cdmae.retrieval import bm25


@command
def main(*, collection: Path, output: Path, threads: int = 1):
    """Index titles and texts of `collection` with Lucene."""
    bm25.build(collection, output, threads)


if __name__ == "__main__":
    main()
