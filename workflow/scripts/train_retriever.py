"""Train a retriever: stages 1, 2 and 3."""

from cdmae import retriever
from cdmae.command import command

main = command(retriever.train)

if __name__ == "__main__":
    main()
