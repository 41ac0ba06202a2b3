"""Export a run as a TREC file for trec_eval, ir_measures and pyserini, with its metadata."""

from pathlib import Path
from typing import Any

from cdmae.collections.store import read_passages, read_queries
from cdmae.exporting import primad
from cdmae.job import run
from cdmae.retrieval import trec as files
from cdmae.runs import read_run


def main(
    *, runs: Path, collection: Path, split: str, system: str, facts: dict[str, Any], trec: Path,
    metadata: Path,
) -> None:  # fmt: skip
    """Write the run of a split, and the facts that `cdmae.exporting.primad` describes."""
    ranked = read_run(runs / f"{collection.name}.{split}.parquet")
    query_ids = read_queries(collection, split)["query_id"].tolist()
    passage_ids = read_passages(collection, ["passage_id"])["passage_id"].combine_chunks()
    files.write_run(trec, ranked, query_ids, passage_ids, system)
    primad.write(metadata, facts)


if __name__ == "__main__":
    run(main, snakemake)
