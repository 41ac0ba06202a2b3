"""The n-grams of a shard of a collection, for one order."""

from pathlib import Path
from typing import Any

from cdmae.cli import command
from cdmae.importance.shards import Shard, list_keys
from cdmae.ranges import Part


@command
def main(
    *,
    shard: str,
    order: int,
    words: Path,
    vocabulary: Path,
    before: Path | None = None,
    merged: list[Path] = (),
    settings: dict[str, Any],
    output: Path,
):
    """Count the n-grams of the order before at every position, and list the keys of this order.

    shard: such as 3-of-7. before and merged, from order 3: the keys of the order before in this
    shard, and their counts in the collection by range.
    """
    window = settings["window"]
    index = Part.read(shard).number - 1
    read = Shard.read(index, words, vocabulary, window)
    list_keys(output, read, order, window, before, merged)
