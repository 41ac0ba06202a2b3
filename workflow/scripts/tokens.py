"""Tokenise a collection into word-pieces."""

from pathlib import Path

from cdmae.collections.store import stream_passages
from cdmae.job import run
from cdmae.tokens import tokenise


def main(*, tokenizer: Path, collection: Path, output: Path, threads: int) -> None:
    """Tokenise titles and texts."""
    passages = stream_passages(collection, ["title", "text"])
    tokenise.tokenise_to(output, passages, tokenizer, threads)


if __name__ == "__main__":
    run(main, snakemake)
