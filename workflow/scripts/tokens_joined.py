"""A collection in word-pieces, from ranges of its passages."""

from cdmae.cli import command
from cdmae.tokens import corpus

command(corpus.join_tokens)
