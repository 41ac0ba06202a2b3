"""Write a third-party retriever's runs, for negatives or for measures."""

from pathlib import Path

from cdmae.cli import run_command
from cdmae.retrieval import external, targets
from cdmae.retrieval.search import read_candidates, search
from cdmae.retrieval.vectors import joined, read_vectors
from cdmae.runs import Run
from cdmae.training import setup


def main(
    *,
    model: str,
    vectors: list[Path] = (),
    collections: list[Path],
    splits: list[str],
    lengths: list[int],
    outputs: list[Path],
    depth: int,
    query_length: int = 0,
    passage_length: int = 0,
    query_prompt: str = "",
    passage_prompt: str = "",
    head: str = "auto",
    candidates: list[Path] = (),
    candidates_depth: int = 0,
    threads: int = 1,
):
    """Search each collection for the queries of its split; write one run per output.

    vectors: one folder per distinct collection; without them, vectors are computed during the
    search and not kept. lengths: the length at which texts of each collection are cut; 0: the
    model's own. candidates: one run per output with the passages to score; none: all passages are
    scored.
    """
    setup.set_up(threads)
    kept = dict(zip(dict.fromkeys(collections), vectors, strict=True)) if vectors else {}

    def find(number: int, texts: list[list[str]], depth: int) -> Run:
        length = lengths[number]
        queries = [
            external.encode_queries(model, each, length or query_length, query_prompt, head)
            for each in texts
        ]
        if vectors:
            shards = read_vectors(kept[collections[number]])
        else:
            cut = length or passage_length
            shards = external.shards(
                model, collections[number], cut, prompt=passage_prompt, head=head
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
