"""Score a student's candidates with the reranker."""

from cdmae.cli import command
from cdmae.retrieval import reranking

command(reranking.teacher)
