"""Index titles and texts of a collection with Lucene."""

from pathlib import Path

from cdmae.job import run
from cdmae.retrieval import bm25

if __name__ == "__main__":
    run(bm25.build, snakemake, folder=Path(snakemake.output[0]))
