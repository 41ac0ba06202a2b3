"""Make a collection: passages, and queries and judgments of every split."""

from pathlib import Path
from typing import Any

from cdmae import collections
from cdmae.collections.store import write_collection
from cdmae.errors import InputError
from cdmae.job import run
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
    needed: the settings that need enough queries, passages or grades, such as
    ``{"stages.stage1.queries": ["queries", "train", 64]}``. A collection with less is refused now
    rather than when the stage begins.
    """
    path = f"collections.{name}"
    if texts:
        source = collections.source(settings["source"])
        kept = settings.keys() - source.Settings.of_a_writer
        settings = {key: settings[key] for key in kept} | {"texts": str(texts)}
    try:
        collection = collections.settings_of(settings, path).load(threads)
        collections.check_needed(needed, name, collections.counts(collection))
        count = write_collection(output, collection)
        # some sources count their passages only while they are written
        collections.check_needed(needed, name, collections.Counts(count))
    except InputError as error:
        is_named = str(error).startswith((path, "stages.", "evaluation."))
        raise (error if is_named else InputError(f"{path}: {error}")) from None
    queries = (
        ", ".join(f"{len(frame):,} {split}" for split, frame in collection.queries.items())
        or "none"
    )
    say(f"{path}: {count:,} passages; queries: {queries}")


if __name__ == "__main__":
    run(
        main,
        snakemake,
        name=snakemake.wildcards.collection,
        output=Path(snakemake.output[0]).parent,
    )
