"""Assign a number to every distinct word in a shard of a collection."""

from pathlib import Path
from typing import Any

from cdmae.cli import run_command
from cdmae.importance import shards
from cdmae.tokens.corpus import read_tokens


def main(*, tokens: Path, settings: dict[str, Any], output: Path, threads: int = 1):
    """Assign numbers to the words of `tokens`, and count their occurrences."""
    shards.number(output, read_tokens(tokens), settings["unit"], threads)


if __name__ == "__main__":
    run_command(main)
