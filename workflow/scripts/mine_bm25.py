"""Negatives of stage 1: BM25's run over training queries, or the published triples of a collection in its place."""

from pathlib import Path
from typing import Any

from cdmae.cli import command
from cdmae.collections.store import read_passages, read_queries
from cdmae.retrieval import bm25, targets
from cdmae.runs import Run, write_run


@command
def main(
    *,
    index: Path,
    collection: Path,
    split: str,
    output: Path,
    depth: int,
    k1: float,
    b: float,
    triples: dict[str, Any],
    threads: int = 1,
):
    """Write the run over a split to `output`; `triples`, if any: their name and the settings of the collection."""
    if triples:
        write_run(output, published(collection, split, triples, depth))
        return

    def find(number: int, texts: list[list[str]], depth: int) -> list[Run]:
        return [bm25.search(index, each, depth, k1, b, threads) for each in texts]

    targets.search([collection], [split], [output], depth, find)


def published(collection: Path, split: str, triples: dict[str, Any], depth: int) -> Run:
    """Return the negatives of published triples; the file is fetched when it is not there."""
    import pyarrow as pa

    from cdmae.collections.sources import ir_datasets
    from cdmae.collections.triples import read
    from cdmae.fields import parse

    own = {key: each for key, each in triples.items() if key not in ("name", "source")}
    settings = parse(ir_datasets.Settings, own, "triples")
    queries = pa.array(read_queries(collection, split)["query_id"], pa.string())
    passages = read_passages(collection, ["passage_id"])["passage_id"].combine_chunks()
    return read(ir_datasets.triples_file(settings, triples["name"]), queries, passages, depth)


if __name__ == "__main__":
    main()
