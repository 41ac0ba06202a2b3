"""Encode a collection with a retriever."""

from cdmae.cli import command
from cdmae.retrieval import vectors

command(vectors.encode_passages)
