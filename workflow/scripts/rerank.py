"""Order the best passages of other runs anew."""

from cdmae.cli import command
from cdmae.retrieval import reranking

command(reranking.rerank)
