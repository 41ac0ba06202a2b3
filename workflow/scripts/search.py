"""Write a retriever's runs: for negatives on training queries, for measures on other queries."""

from pathlib import Path

from cdmae.cli import run_command
from cdmae.ranges import WHOLE, Part
from cdmae.retrieval import targets
from cdmae.retrieval import vectors as inference
from cdmae.retrieval.parts import part_of, shifted
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
    part: str = WHOLE,
):
    """Search each collection for the queries of its split; write one run per output.

    vectors, tokens: one folder per distinct collection. With `tokens` instead of `vectors`, vectors
    are computed during the search and not kept. lengths: the length at which texts of each
    collection are cut; 0: the model's own. candidates: one run per output with the passages to
    score; none: all passages are scored. uses: the head of a unified retriever that is searched,
    `dense` or `sparse`. part: the range of the passages to search, such as 3-of-7.
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
        own, first = part_of(shards, Part.read(part))
        listed = [
            run
            for run, collection in zip(candidates, collections, strict=bool(candidates))
            if collection == collections[number]
        ]
        run = search(
            joined(queries),
            own,
            depth,
            candidates=read_candidates(listed, candidates_depth),
            first=first,
            threads=threads,
            device=str(setup.device()),
        )
        return shifted(run, first)

    targets.search(collections, splits, outputs, depth, find)


if __name__ == "__main__":
    run_command(main)
