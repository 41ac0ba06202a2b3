"""Write trained models and their cards in the layout of sentence-transformers."""

from pathlib import Path
from typing import Any

from cdmae.job import run
from cdmae.report.card import release


def main(
    *,
    cards: dict[str, dict[str, Any]],
    trained: list[Path],
    measures: list[Path],
    models: list[Path],
) -> None:
    """Write the models of the systems in `cards`, which has the facts of each.

    trained, models: the folders to read and to write, one per system. measures: of all systems.
    """
    of_system = {path.stem: path for path in measures}
    for (name, facts), model, output in zip(cards.items(), trained, models, strict=True):
        beside = [of_system[other] for other in facts["beside"]]
        release(model, of_system[name], facts, output, beside)


if __name__ == "__main__":
    run(main, snakemake)
