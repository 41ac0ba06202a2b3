"""Write the runs of BM25."""

from cdmae.cli import run_command
from cdmae.retrieval import lexical

if __name__ == "__main__":
    run_command(lexical.search)
