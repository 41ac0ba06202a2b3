"""Write a retriever's runs: for negatives on training queries, for measures on other queries."""

from pathlib import Path

from cdmae.cli import run_command
from cdmae.retrieval import targets
from cdmae.retrieval import vectors as inference
from cdmae.retrieval.search import read_candidates, search
from cdmae.retrieval.vectors import joined, read_vectors
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
    candidates: list[Path] = (),
    candidates_depth: int = 0,
    uses: str = "",
    threads: int = 1,
):
    """Search each collection for the queries of its split; write one run per output.

    vectors, tokens: one folder per distinct collection. With `tokens` instead of `vectors`, vectors
    are computed during the search and not kept. lengths: the length at which texts of each
    collection are cut; 0: the model's own. candidates: one run per output with the passages to
    score; none: all passages are scored. uses: the head of a unified retriever that is searched,
    `dense` or `sparse`.
    """
    folders = dict(zip(dict.fromkeys(collections), vectors or tokens, strict=True))

    def find(number: int, texts: list[list[str]], depth: int) -> Run:
        length = lengths[number]
        queries = [inference.encode_queries(model, each, threads, length, uses) for each in texts]
        folder = folders[collections[number]]
        shards = (
            read_vectors(folder)
            if vectors
            else inference.shards(model, folder, threads, length, uses=uses)
        )
        listed = [
            run
            for run, collection in zip(candidates, collections, strict=bool(candidates))
            if collection == collections[number]
        ]
        return search(
            joined(queries),
            shards,
            depth,
            candidates=read_candidates(listed, candidates_depth),
            threads=threads,
            device=str(setup.device()),
        )

    targets.search(collections, splits, outputs, depth, find)


if __name__ == "__main__":
    run_command(main)
