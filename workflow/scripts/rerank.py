"""Order the best passages of other runs anew."""

from cdmae.cli import command
from cdmae.retrieval import reranking

main = command(reranking.rerank)

if __name__ == "__main__":
    main()
