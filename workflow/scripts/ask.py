"""Ask a system: the passages that it ranks first for a text."""

import os
import shutil
import sys
from pathlib import Path
from typing import Any

from cdmae.cli import command
from cdmae.collections.store import count_passages, take_passages
from cdmae.errors import InputError
from cdmae.log import say
from cdmae.retrieval.answers import Answer, show
from cdmae.retrieval.asking import ask


@command
def main(
    *,
    name: str,
    system: dict[str, Any],
    collection: Path,
    text: str,
    depth: int = 1000,
    show_best: int = 5,
    length: int = 0,
    threads: int = 1,
):
    """Print the best of the passages of `collection` that `system`, called `name`, ranks for `text`.

    `depth` is that of its runs, on which a fusion depends; texts are cut at `length`, or at the model's own.
    """
    if not text.strip():
        raise InputError("the text is empty; allowed: a text with at least one word")
    passages, scores = ask(system, text, depth, length=length, threads=threads).ranked(0)
    say(f"{name} on {collection.name}, {count_passages(collection):,} passages:\n")
    rows = take_passages(collection, passages[:show_best]).to_pylist()
    answers = [Answer(score, **row) for score, row in zip(scores[:show_best].tolist(), rows, strict=True)]
    coloured = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    print(show(text, answers, width=min(shutil.get_terminal_size((100, 24)).columns, 100), coloured=coloured))
