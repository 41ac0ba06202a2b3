"""An inverted index of a collection."""

from pathlib import Path

from cdmae import bm25, files
from cdmae.command import command


@command
def main(*, collection: Path, output: Path, threads: int = 1):
    """Index titles and texts of `collection` with Lucene."""
    bm25.build(files.read_passages(collection, ["passage_id", "title", "text"]), output, threads)


if __name__ == "__main__":
    main()
