"""A run as TREC text."""

from pathlib import Path

from cdmae import files, trec
from cdmae.command import command


@command
def main(*, run: Path, collection: Path, split: str, system: str, output: Path):
    """Write `run` with the ids of `collection` for trec_eval, ir_measures and pyserini."""
    query_ids = files.read_queries(collection, split)["query_id"].tolist()
    passage_ids = files.read_passages(collection, ["passage_id"])["passage_id"].combine_chunks()
    trec.write_run(output, files.read_run(run), query_ids, passage_ids, system)


if __name__ == "__main__":
    main()
