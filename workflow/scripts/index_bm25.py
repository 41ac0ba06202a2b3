"""An inverted index of a collection."""

from pathlib import Path

from cdmae import bm25
from cdmae.command import command


@command
def main(*, collection: Path, output: Path, threads: int = 1):
    """Index titles and texts of `collection` with Lucene."""
    bm25.build(collection, output, threads)


if __name__ == "__main__":
    main()
