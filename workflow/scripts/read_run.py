"""Read the runs of a third-party system from TREC files."""

from pathlib import Path

from cdmae.cli import run_command
from cdmae.collections.store import read_passages, read_queries
from cdmae.retrieval import trec
from cdmae.runs import write_run


def main(
    *,
    files: list[Path],
    collections: list[Path],
    splits: list[str],
    outputs: list[Path],
    depth: int,
):
    """Write each file as a run of the queries of a split, the best `depth` passages of each."""
    for file, collection, split, output in zip(files, collections, splits, outputs, strict=True):
        query_ids = read_queries(collection, split)["query_id"].tolist()
        passage_ids = read_passages(collection, ["passage_id"])["passage_id"].combine_chunks()
        write_run(output, trec.read_run(file, query_ids, passage_ids, depth))


if __name__ == "__main__":
    run_command(main)
