"""Train a retriever: stages 1, 2 and 3."""

from cdmae.cli import command
from cdmae.finetuning import retriever

command(retriever.train)
