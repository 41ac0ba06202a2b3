"""Score a student's candidates with the reranker."""

from cdmae.cli import command
from cdmae.retrieval import reranking

main = command(reranking.teacher)

if __name__ == "__main__":
    main()
