"""Write a retriever's runs: on training queries for negatives, on other queries for measures."""

from pathlib import Path

from cdmae.cli import command
from cdmae.retrieval import targets
from cdmae.retrieval import vectors as inference
from cdmae.retrieval.search import search
from cdmae.retrieval.vectors import joined, read_vectors
from cdmae.runs import Run
from cdmae.training import setup


@command
def main(
    *,
    model: Path,
    vectors: list[Path] = (),
    tokens: list[Path] = (),
    collections: list[Path],
    splits: list[str],
    lengths: list[int],
    outputs: list[Path],
    depth: int,
    threads: int = 1,
):
    """Search each collection for the queries of its split; write the run to the output in its
    place.

    For each collection once its vectors, or its tokens, whose vectors are then made while they are
    searched and not kept. Where one of the `lengths` is not 0, the queries and passages are cut
    there and not at the model's own.
    """
    folders = dict(zip(dict.fromkeys(collections), vectors or tokens, strict=True))

    def find(number: int, texts: list[list[str]], depth: int) -> Run:
        length = lengths[number]
        queries = [inference.encode_queries(model, each, threads, length) for each in texts]
        folder = folders[collections[number]]
        shards = (
            read_vectors(folder) if vectors else inference.shards(model, folder, threads, length)
        )
        return search(joined(queries), shards, depth, threads=threads, device=str(setup.device()))

    targets.search(collections, splits, outputs, depth, find)
