"""Train a retriever: stages 1, 2 and 3."""

from pathlib import Path

from cdmae import retriever
from cdmae.command import command
from cdmae.config import Stage


@command
def main(
    *,
    name: str,
    settings: Stage,
    encoder: Path,
    collection: Path,
    tokens: Path,
    negatives: Path,
    teacher: Path | None = None,
    seed: int,
    threads: int = 1,
    state: Path,
    output: Path,
):
    """Train a retriever from a pre-trained encoder."""
    retriever.train(
        name=name,
        stage=settings,
        encoder=encoder,
        collection=collection,
        tokens=tokens,
        negatives=negatives,
        teacher=teacher,
        seed=seed,
        threads=threads,
        state=state,
        output=output,
    )


if __name__ == "__main__":
    main()
