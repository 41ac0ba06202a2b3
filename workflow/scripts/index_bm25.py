"""Index titles and texts of a collection with Lucene."""

from cdmae.cli import run_command
from cdmae.retrieval import bm25

if __name__ == "__main__":
    run_command(bm25.build)
