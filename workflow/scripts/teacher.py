"""Score a student's candidates with its teacher, the reranker."""

from cdmae.job import run
from cdmae.retrieval import reranking

if __name__ == "__main__":
    run(reranking.teacher, snakemake)
