"""BoolQ (Clark et al. 2019): yes/no questions of web users, each with a paragraph of Wikipedia.

Passages are the unique paragraphs; a question's paragraph is its only relevant passage. Whole
pages are assigned to splits, so no page is in two splits: in the order of the SHA-256 of their
titles, pages fill test and then dev, and the rest is train. Two pages with a paragraph in common
count as one.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Annotated

from typer import Option

from cdmae.collections.conversions import beir_files
from cdmae.collections.conversions.beir_files import Files, Passage, collapsed
from cdmae.collections.text_files import File

KEYS = ("question", "title", "passage")  # of a line of the file
QUERIES = 500  # the most queries of test, and of dev
DIGESTS = {
    "corpus.jsonl": "a78a4780d23e5bf45ed5a5540c27fac3efccb696a9d00069c56fc6466a20dbed",
    "queries.jsonl": "24277182fab6957caa22064c4974156a4b94478ee855cb65f8a76dec35ce4adf",
    "qrels/test.tsv": "d8b1018f7e4cf205ff43c17394a235a5b718dd568340f17e53c852dc1e59e061",
    "qrels/dev.tsv": "68ad21d618bde6116c484ac20ead6c5a346649843a4487e222260c1446bee05f",
    "qrels/train.tsv": "589bb6b7e6d2200f16b3f8234ec73cf1cec39586630ac2825ee5e181654e0e89",
}


def main(
    questions: Annotated[Path, Option(help="dev.jsonl of BoolQ, one question per line")],
    output: Annotated[Path, Option(help="a folder, such as data/boolq")],
    unchecked: Annotated[bool, Option("--unchecked", help="convert another version, too")] = False,
) -> None:
    """Convert BoolQ's dev.jsonl."""
    beir_files.write(convert(questions), output, DIGESTS, unchecked=unchecked)


def convert(questions: Path, most: int = QUERIES) -> Files:
    """Read BoolQ's file; `most`: the maximum number of queries in test, and in dev."""
    rows = _read(questions)
    passages: dict[str, Passage] = {}
    page_of: dict[str, str] = {}  # the page that stands for pages with a paragraph in common
    for number, row in enumerate(rows, 1):
        text = collapsed(row["passage"])
        title = row["title"]
        page_of.setdefault(title, title)
        found = passages.setdefault(text, Passage(f"p{number:04}", text, title))
        first = _root(page_of, found.title)
        page_of[_root(page_of, title)] = first
    pages: dict[str, list[int]] = {}
    for number, row in enumerate(rows, 1):
        pages.setdefault(_root(page_of, row["title"]), []).append(number)
    splits: dict[str, list[int]] = {"test": [], "dev": [], "train": []}
    for title in sorted(pages, key=lambda title: hashlib.sha256(title.encode()).hexdigest()):
        own = pages[title]
        room = [name for name in ("test", "dev") if len(splits[name]) + len(own) <= most]
        splits[[*room, "train"][0]].extend(own)
    queries = {}
    relevant = {}
    for number, row in enumerate(rows, 1):
        name = f"q{number:04}"
        queries[name] = row["question"]
        relevant[number] = (name, passages[collapsed(row["passage"])].name, 1)
    qrels = {
        split: [relevant[number] for number in sorted(numbers)] for split, numbers in splits.items()
    }
    return Files(list(passages.values()), queries, qrels)


def _read(path: Path) -> list[dict[str, str]]:
    """Read the questions; raise `InputError` for a line without a question."""
    return [row for _, (row,) in File(path, _question).rows()]


def _question(_: int, line: str) -> tuple[dict[str, str]]:
    """Parse a line of the file; raise ValueError if a key is missing or is not a text."""
    try:
        row = json.loads(line)
        texts = {key: row[key] for key in KEYS}
    except (ValueError, TypeError, KeyError, RecursionError):
        texts = {}
    if not texts or not all(isinstance(text, str) for text in texts.values()):
        raise ValueError(f"it is not a JSON object with the texts {', '.join(KEYS)}")
    return (texts,)


def _root(page_of: dict[str, str], title: str) -> str:
    while page_of[title] != title:
        title = page_of[title]
    return title
