"""Make the tokenizer of an initial model: the checkpoint's own, or one trained on a collection."""

from pathlib import Path
from typing import Any

from cdmae.files import complete
from cdmae.job import run
from cdmae.tokens import prompts, tokenise
from cdmae.tokens.vocabulary import Vocabulary


def main(
    *,
    settings: dict[str, Any],
    prompted: dict[str, Any],
    collection: Path | None = None,
    output: Path,
):
    """Train a WordPiece tokenizer on the passages of `collection`, or copy the checkpoint's own.

    prompted: for each prompt of a stage, its text, and by setting the lengths at which it is cut.
    One that leaves no room for a text is refused now rather than after the pre-training.
    """
    if settings.get("checkpoint"):
        tokenizer = tokenise.load_tokenizer(settings["checkpoint"])
    else:
        tokenizer = tokenise.train_tokenizer(tokenise.Texts(collection), settings["vocabulary"])
    with complete(output) as aside:
        tokenizer.save_pretrained(aside)
    Vocabulary.read(output)  # refuses a tokenizer that no model here can use
    for key, (text, lengths) in prompted.items():
        prompts.check(key, text, lengths, output)


if __name__ == "__main__":
    run(main, snakemake)
