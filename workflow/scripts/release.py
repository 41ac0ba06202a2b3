"""A trained model with its card, as others load it."""

from pathlib import Path
from typing import Any

from cdmae.cli import command
from cdmae.report import card


@command
def main(*, model: Path, measures: Path, facts: dict[str, Any], output: Path):
    """Link the files of the trained `model` into the folder `output` and write its card there."""
    card.release(model, measures, facts, output)


if __name__ == "__main__":
    main()
