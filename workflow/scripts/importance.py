"""The importance of every word-piece of a collection: equations 7 and 8."""

from pathlib import Path
from typing import Any

from cdmae import importance
from cdmae import ngrams as counted
from cdmae.command import command
from cdmae.files.tokens import read_tokens


@command
def main(*, ngrams: Path, tokens: Path, settings: dict[str, Any], output: Path, threads: int = 1):
    """Turn the counts of `ngrams` into the importance of the word-pieces of `tokens`."""
    counts = counted.Counts.read(ngrams)
    formula = {name: settings[name] for name in ("pmi", "normaliser", "edges")}
    words = importance.ami(counts.counts, counts.totals, **formula, threads=threads)
    values = importance.broadcast(words, read_tokens(tokens), counts.table.unit)
    importance.write(output, values, importance.Table(counts.table, formula))


if __name__ == "__main__":
    main()
