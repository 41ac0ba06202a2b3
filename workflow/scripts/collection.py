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
    collection: str,
    settings: dict[str, Any],
    output: Path,
    texts: Path | None = None,
    shared: Path | None = None,
) -> None:
    """Make a collection from its settings in the config.

    texts: the file of texts that another job has written for this source. shared: the folder of
    the collection whose passages are shared.
    """
    path = f"collections.{collection}"
    if texts:
        settings = settings | {"model": "", "texts": str(texts)}
    if shared:
        settings = settings | {"of": str(shared)}
    try:
        made = collections.settings_of(settings, path).load()
    except InputError as error:
        raise (error if str(error).startswith(path) else InputError(f"{path}: {error}")) from None
    count = write_collection(output, made)
    queries = ", ".join(f"{len(frame):,} {split}" for split, frame in made.queries.items())
    say(f"{path}: {count:,} passages; queries: {queries or 'none'}")


if __name__ == "__main__":
    run(main, snakemake)
