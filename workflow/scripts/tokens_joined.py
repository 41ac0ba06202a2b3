"""Join the word-pieces of a collection from ranges of its passages."""

from cdmae.cli import run_command
from cdmae.tokens import corpus

if __name__ == "__main__":
    run_command(corpus.join_tokens)
