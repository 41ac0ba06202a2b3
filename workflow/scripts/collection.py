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
    trained_on: dict[str, tuple[str, int]],
    output: Path,
    texts: Path | None = None,
    shared: Path | None = None,
) -> None:
    """Make a collection from its settings in the config.

    trained_on: for each stage, its split and the number of judged queries that it asks for. texts:
    the file of texts that another job has written for this source. shared: the folder of the
    collection whose passages are shared.
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
    judged = collections.relevant_queries(made)
    for stage, (split, number) in trained_on.items():
        if number > judged[split]:
            words = f"expected up to {judged[split]:,}, or 0 for all: the queries of {collection} "
            raise InputError(
                f" is {number:,}; {words}{split} with a relevant passage",
                keys=("stages", stage, "train_queries"),
            )
    count = write_collection(output, made)
    queries = ", ".join(f"{len(frame):,} {split}" for split, frame in made.queries.items())
    say(f"{path}: {count:,} passages; queries: {queries or 'none'}")


if __name__ == "__main__":
    run(main, snakemake)
