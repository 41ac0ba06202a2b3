"""Write the runs of BM25."""

from cdmae.job import on_targets, run
from cdmae.retrieval import bm25

if __name__ == "__main__":
    run(bm25.write_runs, snakemake, **on_targets(snakemake))
