"""Train a reranker, the teacher of stage 3."""

from cdmae.cli import run_command
from cdmae.finetuning import reranker

if __name__ == "__main__":
    run_command(reranker.train)
