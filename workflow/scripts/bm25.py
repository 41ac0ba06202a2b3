"""Write the runs of BM25."""

from cdmae.job import on_targets, run
from cdmae.retrieval import lexical

if __name__ == "__main__":
    run(lexical.search, snakemake, **on_targets(snakemake))
