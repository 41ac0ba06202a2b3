"""Write BM25's runs."""

from cdmae.cli import run_command
from cdmae.retrieval import lexical

if __name__ == "__main__":
    run_command(lexical.search)
