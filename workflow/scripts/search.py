"""Write the runs of a system that searches vectors."""

from cdmae.job import on_targets, run
from cdmae.retrieval.search import write_runs

if __name__ == "__main__":
    run(write_runs, snakemake, **on_targets(snakemake, "candidates", "first"))
