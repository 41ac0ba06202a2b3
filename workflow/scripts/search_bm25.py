"""BM25's runs."""

from cdmae.cli import command
from cdmae.retrieval import lexical

command(lexical.search)
