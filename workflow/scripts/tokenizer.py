"""Make the tokenizer of an initial model: the checkpoint's own, or one trained on a collection."""

from pathlib import Path
from typing import Any

from cdmae.cli import run_command
from cdmae.files import complete
from cdmae.tokens import tokenise


def main(*, start: dict[str, Any], collection: Path | None = None, output: Path):
    """Train a WordPiece tokenizer on the passages of `collection`, or copy the checkpoint's own."""
    if start.get("checkpoint"):
        tokenizer = tokenise.load_tokenizer(start["checkpoint"])
    else:
        tokenizer = tokenise.train_tokenizer(tokenise.Texts(collection), start["vocabulary"])
    with complete(output) as aside:
        tokenizer.save_pretrained(aside)


if __name__ == "__main__":
    run_command(main)
