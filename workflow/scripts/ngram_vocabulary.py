"""Merge the vocabularies of a collection's shards into one."""

from pathlib import Path

from cdmae.cli import run_command
from cdmae.importance import shards


def main(*, words: list[Path], output: Path):
    """Merge the words of all shards into one vocabulary."""
    shards.merge_words(output, words)


if __name__ == "__main__":
    run_command(main)
