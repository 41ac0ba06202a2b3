"""Join a collection's word-pieces that were made for ranges of the passages."""

from cdmae.cli import run_command
from cdmae.tokens import corpus

if __name__ == "__main__":
    run_command(corpus.join_tokens)
