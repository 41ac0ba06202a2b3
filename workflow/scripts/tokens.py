"""Tokenise a collection into word-pieces."""

from pathlib import Path

from cdmae.collections.store import stream_passages
from cdmae.job import run
from cdmae.tokens import tokenise


def main(*, tokenizer: Path, passages: Path, output: Path, threads: int) -> None:
    """Tokenise titles and texts; passages: the file in the folder of a collection."""
    streamed = stream_passages(passages.parent, ["title", "text"])
    tokenise.tokenise_to(output, streamed, tokenizer, threads)


if __name__ == "__main__":
    run(main, snakemake)
