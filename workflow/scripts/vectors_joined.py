"""Join a collection's vectors that were computed for ranges of the passages."""

from cdmae.cli import run_command
from cdmae.retrieval import parts

if __name__ == "__main__":
    run_command(parts.join_vectors)
