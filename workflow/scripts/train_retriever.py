"""Train a retriever: stages 1, 2 and 3."""

from cdmae.cli import run_command
from cdmae.finetuning import retriever

if __name__ == "__main__":
    run_command(retriever.train)
