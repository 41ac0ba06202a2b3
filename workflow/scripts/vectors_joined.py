"""A collection's vectors, from ranges of its passages."""

from cdmae.cli import command
from cdmae.retrieval import parts

command(parts.join_vectors)
