"""Count the n-grams of one order in one range of keys, over all shards of a collection."""

from pathlib import Path

from cdmae.cli import run_command
from cdmae.importance import shards
from cdmae.ranges import Part


def main(*, keys: list[Path], part: str, table: Path, answers: Path):
    """Count the n-grams in one range of keys, such as 3-of-7, over every shard."""
    number, parts = Part.read(part)
    shards.merge_keys(table, answers, keys, number - 1, parts)


if __name__ == "__main__":
    run_command(main)
