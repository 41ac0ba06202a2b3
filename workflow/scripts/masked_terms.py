"""Count the words that importance-aware and uniform masks cover."""

from pathlib import Path
from typing import Any

from cdmae.files import write_json
from cdmae.job import run
from cdmae.masking import terms
from cdmae.tokens.corpus import read_tokens


def main(
    *,
    tokens: Path,
    tokenizer: Path,
    importance: Path,
    settings: dict[str, Any],
    seed: int,
    example: str,
    output: Path,
):
    """Mask passages with both kinds of masks; write the masked words and an example."""
    found = terms.describe(
        read_tokens(tokens), tokenizer, importance, settings=settings, seed=seed, example=example
    )
    write_json(output, found)


if __name__ == "__main__":
    run(main, snakemake)
