"""Score a student's candidates with its teacher, the reranker."""

from cdmae.cli import run_command
from cdmae.retrieval import reranking

if __name__ == "__main__":
    run_command(reranking.teacher)
