"""Order the best passages of other runs anew."""

from cdmae import reranking
from cdmae.command import command

main = command(reranking.rerank)

if __name__ == "__main__":
    main()
