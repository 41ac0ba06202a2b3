"""Score a student's candidates with the reranker."""

from pathlib import Path

from cdmae import reranking
from cdmae.command import command


@command
def main(
    *,
    model: Path,
    collection: Path,
    tokens: Path,
    split: str,
    negatives: Path,
    depth: int,
    group: int,
    random_negatives: int,
    epochs: float,
    seed: int,
    output: Path,
    threads: int = 1,
):
    """Write the teacher's run of a student: depth, group, random negatives, epochs and seed are the student's."""
    reranking.teacher(
        model=model,
        collection=collection,
        tokens=tokens,
        split=split,
        negatives=negatives,
        depth=depth,
        group=group,
        random_negatives=random_negatives,
        epochs=epochs,
        seed=seed,
        threads=threads,
        output=output,
    )


if __name__ == "__main__":
    main()
