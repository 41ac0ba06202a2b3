"""Order the best passages of other runs anew."""

from pathlib import Path

from cdmae import reranking
from cdmae.command import command


@command
def main(
    *,
    model: Path,
    collections: list[Path],
    tokens: list[Path],
    splits: list[str],
    runs: list[Path],
    depth: int,
    outputs: list[Path],
    threads: int = 1,
):
    """Rerank runs, one per target: collection, tokens, split, run and output in the same order."""
    reranking.rerank(
        model=model,
        collections=collections,
        tokens=tokens,
        splits=splits,
        runs=runs,
        outputs=outputs,
        depth=depth,
        threads=threads,
    )


if __name__ == "__main__":
    main()
