"""Encode a collection's passages with a retriever into vectors."""

from cdmae.job import run
from cdmae.retrieval.vectors import write_vectors

if __name__ == "__main__":
    run(write_vectors, snakemake)
