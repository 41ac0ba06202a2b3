"""BM25's runs; over training queries published triples may take their place."""

from cdmae.cli import command
from cdmae.retrieval import lexical

command(lexical.search)
