"""Encode a collection with a third-party retriever."""

from cdmae.cli import command
from cdmae.retrieval import external

command(external.encode_passages)
