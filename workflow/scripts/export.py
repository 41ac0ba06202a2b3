"""Export a run as a TREC file."""

from pathlib import Path

from cdmae.collections.store import read_passages, read_queries
from cdmae.job import run
from cdmae.retrieval import trec
from cdmae.runs import read_run


def main(*, runs: Path, collection: Path, split: str, system: str, output: Path):
    """Write a run, the file `runs`, with the ids of `collection` for trec_eval and pyserini."""
    query_ids = read_queries(collection, split)["query_id"].tolist()
    passage_ids = read_passages(collection, ["passage_id"])["passage_id"].combine_chunks()
    trec.write_run(output, read_run(runs), query_ids, passage_ids, system)


if __name__ == "__main__":
    name = f"{snakemake.wildcards.collection}.{snakemake.wildcards.split}.parquet"
    run(main, snakemake, runs=Path(snakemake.input.runs, name), output=snakemake.output.trec)
