"""Make the tokenizer of an initial model: the checkpoint's own, or one trained on a collection."""

from pathlib import Path
from typing import Any

from cdmae.files import complete
from cdmae.job import run
from cdmae.tokens import tokenise
from cdmae.tokens.vocabulary import Vocabulary


def main(*, settings: dict[str, Any], passages: Path | None, output: Path) -> None:
    """Copy the tokenizer of a checkpoint, or train one on `passages`."""
    if "checkpoint" in settings:
        tokenizer = tokenise.load_tokenizer(settings["checkpoint"])
    else:
        texts = tokenise.Texts(passages.parent)
        how = (settings["vocabulary"], settings.get("strip_accents", True))
        tokenizer = tokenise.train_tokenizer(texts, *how)
    with complete(output) as aside:
        tokenizer.save_pretrained(aside)
    Vocabulary.read(output)  # refuses a tokenizer that no model here can use


if __name__ == "__main__":
    run(main, snakemake)
