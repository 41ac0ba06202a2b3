"""Make a collection: passages, and queries and judgments of every split."""

from pathlib import Path
from typing import Any

from cdmae import collections
from cdmae.cli import run_command
from cdmae.collections.store import write_collection
from cdmae.errors import InputError
from cdmae.log import say


def main(
    *,
    name: str,
    settings: dict[str, Any],
    needed: dict[str, Any],
    output: Path,
    texts: Path | None = None,
    threads: int = 1,
) -> None:
    """Make the collection `name` from its settings in the config, `source` included.

    texts: the file of texts that another job has written for this source, or None.
    needed: the split and the number of queries of each setting of a stage that needs them, such as
    ``{"stages.stage1.queries": ["train", 64]}``. A split with fewer queries is refused now rather
    than when the stage begins.
    """
    path = f"collections.{name}"
    if texts:
        source = collections.source(settings["source"])
        kept = settings.keys() - source.Settings.of_a_writer
        settings = {key: settings[key] for key in kept} | {"texts": str(texts)}
    try:
        collection = collections.settings_of(settings, path).load(threads)
        relevant = collections.relevant(collection.qrels)
        for key, (split, queries) in needed.items():
            collections.check_queries(key, queries, name, split, relevant)
        count = write_collection(output, collection)
    except InputError as error:
        raise (
            error if str(error).startswith((path, "stages.")) else InputError(f"{path}: {error}")
        ) from None
    queries = (
        ", ".join(f"{len(frame):,} {split}" for split, frame in collection.queries.items())
        or "none"
    )
    say(f"{path}: {count:,} passages; queries: {queries}")


if __name__ == "__main__":
    run_command(main)
