"""The n-grams of a collection from the counts of its shards and ranges."""

from pathlib import Path

from cdmae.cli import command
from cdmae.importance import shards


@command
def main(
    *, vocabulary: Path, words: list[Path], keys: list[Path], counts: list[Path] = (), output: Path
):
    """Join the counts of all shards, and the tables of all ranges.

    keys and counts are listed by order, and within an order by shard or range.
    """
    size = len(words)
    listed = [keys[first : first + size] for first in range(0, len(keys), size)]
    merged = [counts[first : first + size] for first in range(0, len(counts), size)]
    shards.gather(output, vocabulary, words, listed, merged)
