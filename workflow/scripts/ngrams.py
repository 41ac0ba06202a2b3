"""How often every n-gram of a collection occurs."""

from pathlib import Path
from typing import Any

from cdmae import files, ngrams
from cdmae.command import command


@command
def main(*, tokens: Path, tokenizer: Path, settings: dict[str, Any], output: Path, threads: int = 1):
    """Count the n-grams of the words of `tokens`, exactly, at every position."""
    del tokenizer  # the tokens say which word-pieces begin a word
    counts = ngrams.count(files.read_tokens(tokens), unit=settings["unit"], window=settings["window"], threads=threads)
    counts.write(output)


if __name__ == "__main__":
    main()
