"""Score a student's candidates with the reranker."""

from cdmae import reranking
from cdmae.command import command

main = command(reranking.teacher)

if __name__ == "__main__":
    main()
