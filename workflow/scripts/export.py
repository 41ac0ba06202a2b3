"""Export a run as a TREC file."""

from pathlib import Path

from cdmae.collections.store import read_passages, read_queries
from cdmae.job import run
from cdmae.retrieval import trec
from cdmae.runs import read_run


def main(*, runs: Path, collection: Path, target: str, system: str, output: Path) -> None:
    """Write a run with the ids of its collection, for trec_eval, ir_measures and pyserini."""
    split = target.removeprefix(f"{collection.name}.")
    ranked = read_run(runs / f"{target}.parquet")
    query_ids = read_queries(collection, split)["query_id"].tolist()
    passage_ids = read_passages(collection, ["passage_id"])["passage_id"].combine_chunks()
    trec.write_run(output, ranked, query_ids, passage_ids, system)


if __name__ == "__main__":
    run(main, snakemake)
