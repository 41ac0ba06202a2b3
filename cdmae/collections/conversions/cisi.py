"""CISI: abstracts on information science, with queries and judgments, in SMART's format.

An entry begins with ``.I`` and its number, and a field with a full stop and a letter: T for the
title, W for the text. The text of a query with a title is the title, a space and the text.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated

from typer import Option

from cdmae.collections.conversions import beir_files
from cdmae.collections.conversions.beir_files import Files, Passage, collapsed
from cdmae.errors import InputError

MARK = re.compile(r"\.([A-Z])(?:\s+(\d+))?\s*")
DIGESTS = {
    "corpus.jsonl": "1934260e2ffda83816126810e77e396bdd1207aab2d0f358cce67680a51ed9de",
    "queries.jsonl": "74a7e3671322e918fd5eb32437b6b32134ff9f13ec4748356fdcbca7953ce1db",
    "qrels/test.tsv": "5ff417257cd005a90a06ad42f0468c791fb862f38cd9b53cac9e516ffe675011",
}


def main(
    folder: Annotated[Path, Option(help="the folder with the three files")],
    output: Annotated[Path, Option(help="a folder, such as data/cisi")],
    unchecked: Annotated[bool, Option("--unchecked", help="convert another version, too")] = False,
) -> None:
    """Convert CISI.ALL, CISI.QRY and CISI.REL."""
    beir_files.write(convert(folder), output, DIGESTS, unchecked=unchecked)


def convert(folder: Path) -> Files:
    """Read the three files."""
    corpus = [
        Passage(entry["I"], entry.get("W", ""), entry.get("T", ""))
        for entry in _entries(folder / "CISI.ALL")
    ]
    queries = {}
    for entry in _entries(folder / "CISI.QRY"):
        parts = (entry.get("T"), entry.get("W"))
        queries[entry["I"]] = " ".join(filter(None, parts))
    rows = []
    path = folder / "CISI.REL"
    for number, line in enumerate(path.read_text(encoding="latin-1").splitlines(), 1):
        fields = line.split()
        if len(fields) < 2:
            raise InputError(
                f"{path}, line {number} lacks a query or passage; allowed: two numbers"
            )
        rows.append((fields[0], fields[1], 1))
    return Files(corpus, queries, {"test": rows})


def _entries(path: Path) -> list[dict[str, str]]:
    """Read a file of SMART: the number of each entry under I, and the text of its other fields."""
    entries: list[dict[str, str]] = []
    field = ""
    for number, line in enumerate(path.read_text(encoding="latin-1").splitlines(), 1):
        mark = MARK.fullmatch(line)
        if mark and mark[1] == "I" and mark[2]:
            entries.append({"I": mark[2]})
            field = ""
        elif not entries:
            raise InputError(f"{path}, line {number} is before the first entry; allowed: .I 1")
        elif mark and not mark[2]:
            field = mark[1]
        elif field:
            entries[-1][field] = f"{entries[-1].get(field, '')} {line}"
    return [
        {name: value if name == "I" else collapsed(value) for name, value in entry.items()}
        for entry in entries
    ]
