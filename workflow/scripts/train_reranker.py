"""Train a reranker, the teacher of stage 3."""

from pathlib import Path

from cdmae import reranker
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
    seed: int,
    threads: int = 1,
    state: Path,
    output: Path,
):
    """Train a reranker from a pre-trained encoder."""
    reranker.train(
        name=name,
        stage=settings,
        encoder=encoder,
        collection=collection,
        tokens=tokens,
        negatives=negatives,
        seed=seed,
        threads=threads,
        state=state,
        output=output,
    )


if __name__ == "__main__":
    main()
