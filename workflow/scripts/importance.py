"""Compute the importance of every word-piece of a collection (equations 7 and 8)."""

from pathlib import Path
from typing import Any

from cdmae.importance import ami
from cdmae.job import run
from cdmae.tokens.corpus import read_tokens


def main(*, ngrams: Path, tokens: Path, settings: dict[str, Any], output: Path) -> None:
    """Turn the counts of `ngrams` into the importance of the word-pieces of `tokens`."""
    formula = {name: settings[name] for name in ("pmi", "normaliser", "edges")}
    ami.estimate(output, ngrams, read_tokens(tokens), formula)


if __name__ == "__main__":
    run(main, snakemake)
