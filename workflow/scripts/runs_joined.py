"""A retriever's runs, from runs over ranges of the passages."""

from cdmae.cli import command
from cdmae.retrieval import parts

command(parts.merge_runs)
