"""Join a collection's vectors from ranges of its passages."""

from cdmae.cli import run_command
from cdmae.retrieval import parts

if __name__ == "__main__":
    run_command(parts.join_vectors)
