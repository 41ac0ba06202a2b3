"""Rerank the best passages of other systems' runs."""

from cdmae.job import on_targets, run
from cdmae.retrieval import reranking

if __name__ == "__main__":
    run(reranking.rerank, snakemake, **on_targets(snakemake, "runs"))
