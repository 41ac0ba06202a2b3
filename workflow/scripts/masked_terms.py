"""Count the words that importance-aware and uniform masks cover."""

from pathlib import Path
from typing import Any

from cdmae.files import write_json
from cdmae.job import run
from cdmae.masking import terms
from cdmae.tokens.corpus import read_tokens


def main(
    *, tokens: Path, tokenizer: Path, importance: Path, settings: dict[str, Any], seed: int,
    example: str, output: Path,
) -> None:  # fmt: skip
    """Mask passages with both kinds of masks; write the masked words and an example."""
    passages = read_tokens(tokens)
    how = {"settings": settings, "seed": seed, "example": example}
    write_json(output, terms.describe(passages, tokenizer, importance, **how))


if __name__ == "__main__":
    run(main, snakemake)
