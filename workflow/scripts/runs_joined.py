"""Merge a retriever's runs over ranges of the passages."""

from cdmae.cli import run_command
from cdmae.retrieval import parts

if __name__ == "__main__":
    run_command(parts.merge_runs)
