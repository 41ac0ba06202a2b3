"""Count the words that importance-aware and uniform masks cover."""

from pathlib import Path
from typing import Any

from cdmae.files import write_json
from cdmae.job import run
from cdmae.masking import terms
from cdmae.tokens.corpus import read_tokens


def main(
    *, tokens: Path, tokenizer: Path, importance: Path, settings: dict[str, Any], seed: int,
    output: Path,
) -> None:  # fmt: skip
    """Mask passages with both kinds of masks, and write the masked words."""
    passages = read_tokens(tokens)
    found = terms.describe(passages, tokenizer, importance, settings=settings, seed=seed)
    write_json(output, found)


if __name__ == "__main__":
    run(main, snakemake)
