"""A foreign retriever's runs: over training queries they are negatives, over the others they are measured."""

from pathlib import Path

from cdmae import external, files, targets, training
from cdmae.command import command
from cdmae.search import search


@command
def main(
    *,
    model: str,
    vectors: list[Path],
    collections: list[Path],
    splits: list[str],
    outputs: list[Path],
    depth: int,
    query_length: int = 0,
    threads: int = 1,
):
    """Search the vectors of each collection for the queries of its split; write the run to the output in its place."""
    training.set_up(threads)

    def find(number: int, texts: list[str], depth: int) -> files.Run:
        queries = external.encode_queries(model, texts, query_length)
        shards = files.read_vectors(vectors[number])
        return search(queries, shards, depth, threads=threads, device=str(training.device()))

    targets.search(collections, splits, outputs, depth, find)


if __name__ == "__main__":
    main()
