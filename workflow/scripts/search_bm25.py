"""BM25's runs: over training queries they are negatives, over the others they are measured."""

from pathlib import Path

from cdmae.cli import command
from cdmae.retrieval import bm25, targets
from cdmae.runs import Run


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
    """Search the index of each collection for the queries of its split and write the run to the output in its place."""

    def find(number: int, texts: list[list[str]], depth: int) -> list[Run]:
        return [bm25.search(indexes[number], each, depth, k1, b, threads) for each in texts]

    targets.search(collections, splits, outputs, depth, find)


if __name__ == "__main__":
    main()
