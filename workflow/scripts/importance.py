"""Count the n-grams of a collection, and compute the importance of its word-pieces by them."""

from pathlib import Path
from typing import Any

from cdmae.importance import ami
from cdmae.importance.ngrams import count_to
from cdmae.job import run
from cdmae.tokens.corpus import read_tokens


def main(
    *, tokens: Path, settings: dict[str, Any], ngrams: Path, importance: Path, memory: int
) -> None:
    """Count exactly, at every position (equation 7), and average (equation 8).

    memory: in MB; half of it is for sorting n-grams.
    """
    corpus = read_tokens(tokens)
    counting = {name: settings[name] for name in ("unit", "window")}
    count_to(ngrams, corpus, **counting, memory=memory * 500_000)
    formula = {name: settings[name] for name in ("pmi", "normaliser", "edges")}
    ami.estimate(importance, ngrams, corpus, formula)


if __name__ == "__main__":
    run(main, snakemake)
