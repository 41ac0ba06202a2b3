"""A retriever's runs: over training queries they are negatives, over the others they are measured."""

from pathlib import Path

from cdmae import files, inference, targets, training
from cdmae.command import command
from cdmae.search import search


@command
def main(
    *,
    model: Path,
    vectors: list[Path],
    collections: list[Path],
    splits: list[str],
    outputs: list[Path],
    depth: int,
    threads: int = 1,
):
    """Search the vectors of each collection for the queries of its split; write the run to the output in its place."""

    def find(number: int, texts: list[str], depth: int) -> files.Run:
        queries = inference.encode_queries(model, texts, threads)
        shards = files.read_vectors(vectors[number])
        return search(queries, shards, depth, threads=threads, device=str(training.device()))

    targets.search(collections, splits, outputs, depth, find)


if __name__ == "__main__":
    main()
