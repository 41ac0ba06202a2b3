"""Encode a collection with a retriever into vectors."""

from cdmae.cli import run_command
from cdmae.retrieval import vectors

if __name__ == "__main__":
    run_command(vectors.encode_passages)
