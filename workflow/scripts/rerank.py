"""Rerank the best passages of other systems' runs."""

from cdmae.cli import run_command
from cdmae.retrieval import reranking

if __name__ == "__main__":
    run_command(reranking.rerank)
