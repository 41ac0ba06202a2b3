"""Export a run as a TREC file, with its metadata in a second file."""

from pathlib import Path
from typing import Any

from cdmae.collections.store import read_passages, read_queries
from cdmae.exporting import primad
from cdmae.job import run
from cdmae.retrieval import trec
from cdmae.runs import read_run


def main(
    *,
    runs: Path,
    collection: Path,
    split: str,
    system: str,
    facts: dict[str, Any],
    output: Path,
    metadata: Path,
):
    """Write a run with the ids of `collection` for trec_eval, ir_measures and pyserini.

    runs: the file of the run. facts: the contents of the metadata (`cdmae.exporting.primad`).
    """
    query_ids = read_queries(collection, split)["query_id"].tolist()
    passage_ids = read_passages(collection, ["passage_id"])["passage_id"].combine_chunks()
    trec.write_run(output, read_run(runs), query_ids, passage_ids, system)
    primad.write(metadata, facts)


if __name__ == "__main__":
    name = f"{snakemake.wildcards.collection}.{snakemake.wildcards.split}.parquet"
    run(main, snakemake, runs=Path(snakemake.input.runs, name), output=snakemake.output.trec)
