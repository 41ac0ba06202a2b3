"""Measure the sparsity of a sparse retriever's vectors."""

from cdmae.job import on_targets, run
from cdmae.retrieval import sparsity

if __name__ == "__main__":
    run(sparsity.measure, snakemake, **on_targets(snakemake))
