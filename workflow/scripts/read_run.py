"""Read the runs of a third-party system from TREC files, or from tables of pairs."""

from pathlib import Path

from cdmae.collections.store import read_passages, read_queries
from cdmae.collections.tables import suffix_of
from cdmae.files import read_json
from cdmae.job import run
from cdmae.retrieval import pair_run, trec
from cdmae.runs import Target, write_run


def main(
    *,
    files: list[Path],
    targets: list[Target],
    depth: int,
) -> None:
    """Write a run of the best `depth` passages per query for each file."""
    for file, target in zip(files, targets, strict=True):
        collection = target.folder
        queries = read_queries(collection, target.split)
        if suffix_of(file) in ("", ".tsv"):
            ids = read_passages(collection, ["passage_id"])["passage_id"].combine_chunks()
            found = trec.read_run(file, queries["query_id"].tolist(), ids, depth)
        else:
            passages = read_passages(collection)
            columns = read_json(collection / "about.json").get("columns", {})
            found = pair_run.read_run(file, queries, passages, depth, columns)
        write_run(target.output, found)


if __name__ == "__main__":
    run(main, snakemake)
