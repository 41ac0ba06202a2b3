"""BM25's runs: over training queries they are negatives, over the others they are measured."""

from pathlib import Path

from cdmae import bm25, files
from cdmae.command import command


@command
def main(
    *,
    indexes: list[Path],
    collections: list[Path],
    splits: list[str],
    outputs: list[Path],
    depth: int,
    k1: float,
    b: float,
    threads: int = 1,
):
    """Search each of `indexes` for the queries of a collection's split and write the run to the output in its place."""
    for index, collection, split, output in zip(indexes, collections, splits, outputs, strict=True):
        texts = files.read_queries(collection, split)["text"].tolist()
        files.write_run(output, bm25.search(index, texts, depth, k1, b, threads))


if __name__ == "__main__":
    main()
