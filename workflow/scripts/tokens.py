"""A collection in word-pieces."""

from pathlib import Path

from cdmae import files, tokens
from cdmae.command import command


@command
def main(*, tokenizer: Path, collection: Path, output: Path, threads: int = 1):
    """Tokenise the titles and texts of `collection`, once and for all."""
    passages = files.read_passages(collection, ["title", "text"])
    files.write_tokens(output, tokens.tokenise(passages, tokenizer, threads))


if __name__ == "__main__":
    main()
