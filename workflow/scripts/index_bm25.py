"""Index titles and texts of a collection with Lucene."""

from cdmae.cli import command
from cdmae.retrieval import bm25

command(bm25.build)
