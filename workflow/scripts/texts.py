"""Write texts for a collection's passages: a model's queries, or their most important words."""

from pathlib import Path
from typing import Any

from cdmae.job import run


def main(
    *,
    settings: dict[str, Any],
    importance: Path | None,
    tokenizer: Path | None,
    output: Path,
    threads: int,
) -> None:
    """Write keywords by the importance that the settings name, or else a model's texts."""
    if importance:
        from cdmae.importance.keywords import write_keywords

        write_keywords(settings=settings, importance=importance, tokenizer=tokenizer, output=output)
    else:
        from cdmae.retrieval.expansion import write_texts  # with torch

        write_texts(settings, output, threads)


if __name__ == "__main__":
    run(main, snakemake)
