"""Encode a collection with a foreign retriever."""

from cdmae.cli import command
from cdmae.retrieval import external

command(external.encode_passages)
