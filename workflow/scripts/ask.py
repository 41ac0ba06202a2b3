"""Ask a retriever: the passages nearest to a text."""

import os
import shutil
import sys
from pathlib import Path

from cdmae.cli import command
from cdmae.collections.store import take_passages
from cdmae.errors import InputError
from cdmae.log import say
from cdmae.retrieval import vectors as inference
from cdmae.retrieval.answers import Answer, show
from cdmae.retrieval.search import search
from cdmae.retrieval.vectors import read_vectors
from cdmae.training import setup


@command
def main(
    *,
    system: str,
    model: Path,
    vectors: Path,
    collection: Path,
    text: str,
    depth: int = 5,
    length: int = 0,
    threads: int = 1,
):
    """Print the `depth` passages of `collection` that `system` finds for `text`, cut at `length` or the model's own."""
    if not text.strip():
        raise InputError("the text is empty; allowed: a text with at least one word")
    query = inference.encode_queries(model, [text], threads, length)
    shards = read_vectors(vectors)
    run = search(query, shards, depth, threads=threads, device=str(setup.device()))
    say(f"{system} on {collection.name}, {sum(map(len, shards)):,} passages:\n")
    found = take_passages(collection, run.passages).to_pylist()
    answers = [Answer(score, **passage) for score, passage in zip(run.scores.tolist(), found, strict=True)]
    coloured = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    print(show(text, answers, width=min(shutil.get_terminal_size((100, 24)).columns, 100), coloured=coloured))
