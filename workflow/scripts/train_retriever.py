"""Train a retriever: stages 1, 2 and 3."""

from cdmae.cli import command
from cdmae.finetuning import retriever

main = command(retriever.train)

if __name__ == "__main__":
    main()
