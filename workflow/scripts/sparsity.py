"""Measure the sparsity of a sparse retriever's vectors."""

from cdmae.cli import command
from cdmae.retrieval import sparsity

command(sparsity.measure)
