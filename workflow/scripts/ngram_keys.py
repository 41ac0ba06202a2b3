"""List the n-grams of one order in a shard of a collection."""

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

    shard: the name of the shard, such as 3-of-7. counts_before, keys_before, answers: from order 3
    on, the counts and keys of the previous order, and its counts from all ranges of keys.
    """
    window = settings["window"]
    index = Part.read(shard).number - 1
    before = Step(counts_before, keys_before, answers) if counts_before else None
    read = Shard.read(index, words, vocabulary, window)
    list_keys(Step(counts, keys), read, order, window, before)


if __name__ == "__main__":
    run_command(main)
