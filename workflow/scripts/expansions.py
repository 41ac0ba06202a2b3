"""Write texts for a collection's passages by a sequence-to-sequence model."""

from cdmae.cli import run_command
from cdmae.retrieval import expansion

if __name__ == "__main__":
    run_command(expansion.write_texts)
