"""Write a retriever's runs: on training queries for negatives, on other queries for measures."""

from pathlib import Path

import numpy as np

from cdmae.cli import run_command
from cdmae.retrieval import targets
from cdmae.retrieval import vectors as inference
from cdmae.retrieval.search import search
from cdmae.retrieval.vectors import read_vectors
from cdmae.runs import Run
from cdmae.training import setup


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
    """Search each collection for the queries of its split; write one run per output.

    vectors, tokens: one folder per distinct collection. From tokens, vectors are made during the
    search and not kept. lengths: where texts of each collection are cut; 0: at the model's length.
    """
    folders = dict(zip(dict.fromkeys(collections), vectors or tokens, strict=True))

    def find(number: int, texts: list[list[str]], depth: int) -> Run:
        length = lengths[number]
        queries = [inference.encode_queries(model, each, threads, length) for each in texts]
        folder = folders[collections[number]]
        shards = (
            read_vectors(folder) if vectors else inference.shards(model, folder, threads, length)
        )
        return search(
            np.concatenate(queries), shards, depth, threads=threads, device=str(setup.device())
        )

    targets.search(collections, splits, outputs, depth, find)


if __name__ == "__main__":
    run_command(main)
