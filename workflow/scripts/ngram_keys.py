"""The n-grams of a shard of a collection, for one order."""

from pathlib import Path
from typing import Any

from cdmae.cli import run_command
from cdmae.importance.shards import Shard, Step, list_keys
from cdmae.ranges import Part


def main(
    *,
    shard: str,
    order: int,
    words: Path,
    vocabulary: Path,
    counts_before: Path | None = None,
    keys_before: Path | None = None,
    answers: list[Path] = (),
    settings: dict[str, Any],
    counts: Path,
    keys: Path,
):
    """Count the n-grams of the previous order at every position, and list the keys of this order.

    shard: such as 3-of-7. From order 3 on, the previous order has its own counts and keys, and the
    counts from all ranges of its keys.
    """
    window = settings["window"]
    index = Part.read(shard).number - 1
    before = Step(counts_before, keys_before, answers) if counts_before else None
    read = Shard.read(index, words, vocabulary, window)
    list_keys(Step(counts, keys), read, order, window, before)


if __name__ == "__main__":
    run_command(main)
