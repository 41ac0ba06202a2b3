"""Train a reranker, the teacher of stage 3."""

from cdmae import reranker
from cdmae.command import command

main = command(reranker.train)

if __name__ == "__main__":
    main()
