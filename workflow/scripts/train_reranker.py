"""Train a reranker, the teacher of stage 3."""

from cdmae.cli import command
from cdmae.finetuning import reranker

command(reranker.train)
