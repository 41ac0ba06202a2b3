"""Join the n-gram counts of a collection's shards and ranges of keys."""

from pathlib import Path

from cdmae.cli import run_command
from cdmae.importance import shards


def main(
    *,
    vocabulary: Path,
    words: list[Path],
    counts: list[Path],
    tables: list[Path] = (),
    output: Path,
    consume: bool = False,
):
    """Join the counts of all shards and the tables of all ranges of keys.

    counts and tables are listed by order of n-grams, and within an order by shard or range; there
    are as many ranges as shards. consume: delete each file of counts after copying it.
    """
    size = len(words)
    by_order = [counts[first : first + size] for first in range(0, len(counts), size)]
    tables_by_order = [tables[first : first + size] for first in range(0, len(tables), size)]
    shards.gather(output, vocabulary, words, by_order, tables_by_order, consume)


if __name__ == "__main__":
    run_command(main)
