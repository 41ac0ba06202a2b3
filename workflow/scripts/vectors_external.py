"""Encode a collection with a third-party retriever into vectors."""

from cdmae.cli import run_command
from cdmae.retrieval import external

if __name__ == "__main__":
    run_command(external.encode_passages)
