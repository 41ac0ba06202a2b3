"""Measure the sparsity of a sparse retriever's vectors."""

from cdmae.cli import run_command
from cdmae.retrieval import sparsity

if __name__ == "__main__":
    run_command(sparsity.measure)
