"""The tokenizer of a start: its checkpoint's, or one trained on a collection."""

from pathlib import Path
from typing import Any

from cdmae import tokens
from cdmae.command import command
from cdmae.files.outputs import complete


@command
def main(*, start: dict[str, Any], collection: Path | None = None, output: Path):
    """Train a WordPiece tokenizer on the passages of `collection`, or copy the checkpoint's."""
    if start.get("checkpoint"):
        tokenizer = tokens.load_tokenizer(start["checkpoint"])
    else:
        tokenizer = tokens.train_tokenizer(tokens.Texts(collection), start["vocabulary"])
    with complete(output) as aside:
        tokenizer.save_pretrained(aside)


if __name__ == "__main__":
    main()
