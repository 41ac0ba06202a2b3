"""Link the vectors of one head of a unified retriever into a folder of their own."""

from cdmae.cli import run_command
from cdmae.retrieval import vectors

if __name__ == "__main__":
    run_command(vectors.write_head)
