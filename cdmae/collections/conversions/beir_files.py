"""Files in BEIR's layout, with their checksums."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from cdmae.errors import InputError
from cdmae.files import complete

CORPUS = "corpus.jsonl"
QUERIES = "queries.jsonl"


@dataclass(frozen=True)
class Passage:
    """A passage with its id."""

    name: str
    text: str
    title: str = ""


@dataclass(frozen=True)
class Files:
    """The passages, queries and judgments of a collection, to be written as files.

    queries: the text of each query by its id. qrels: (query, passage, grade) for each split.
    """

    corpus: list[Passage]
    queries: Mapping[str, str]
    qrels: Mapping[str, Iterable[tuple[str, str, int]]]

    def contents(self) -> dict[str, str]:
        """Return the text of each file by its path."""
        passages = [
            {"_id": each.name, "title": each.title, "text": each.text} for each in self.corpus
        ]
        queries = [{"_id": name, "text": text} for name, text in self.queries.items()]
        files = {CORPUS: _lines(passages), QUERIES: _lines(queries)}
        for split, rows in self.qrels.items():
            lines = ["query-id\tcorpus-id\tscore", *("\t".join(map(str, row)) for row in rows)]
            files[f"qrels/{split}.tsv"] = "\n".join(lines) + "\n"
        return files


def write(files: Files, output: Path, digests: Mapping[str, str], *, unchecked: bool) -> None:
    """Write the folder of a collection; passages and queries are gzipped.

    digests: the SHA-256 of each file's text. unchecked: write texts with other checksums, too.

    Raises `InputError` for texts with other checksums, because measures on them do not compare.
    """
    contents = files.contents()
    for path, text in contents.items():
        found = hashlib.sha256(text.encode()).hexdigest()
        if not unchecked and found != digests.get(path):
            raise InputError(
                f"{path} would have the SHA-256 {found}; allowed: {digests.get(path)}. The files "
                "that were given are of another version; docs/results.md names the one that was "
                "measured, and --unchecked converts any"
            )
    with complete(output) as aside:
        (aside / "qrels").mkdir(parents=True)
        for path, text in contents.items():
            if path.endswith(".jsonl"):
                # without a time, so that equal texts make equal files
                packed = gzip.compress(text.encode(), mtime=0)
                (aside / f"{path}.gz").write_bytes(packed)
            else:
                (aside / path).write_text(text, encoding="utf-8")


def collapsed(text: str | None) -> str:
    """Replace every sequence of white space by one space."""
    return " ".join((text or "").split())


def _lines(rows: list[dict[str, str]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)
