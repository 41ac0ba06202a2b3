"""Read the catalogue of datasets and files from the package ir_datasets, without importing it."""

from __future__ import annotations

import functools
import json
import re
from collections import Counter
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from cdmae.errors import InputError
from cdmae.fields import suggestion

FEW = 12  # the most names that a message lists


@functools.cache
def entries() -> dict[str, dict[str, Any]]:
    """Return the catalogue: the count of docs, queries and qrels of each dataset id."""
    return read_json("metadata.json")


def has(name: str, part: str) -> bool:
    """Return whether a dataset has docs, queries, qrels or docpairs."""
    return part in entries().get(name, {})


def below(name: str, part: str) -> list[str]:
    """List the subsets of a dataset that have a part: docs, queries, qrels or docpairs."""
    return [
        key.removeprefix(f"{name}/")
        for key in entries()
        if key.startswith(f"{name}/") and has(key, part)
    ]


def collections() -> list[str]:
    """List the datasets with passages of their own."""
    return [
        name for name, parts in entries().items() if "_ref" not in parts.get("docs", {"_ref": ""})
    ]


def counts(name: str, part: str) -> int | None:
    """Return a dataset's number of docs, queries or qrels; None if the catalogue has none."""
    facts = entries().get(name, {}).get(part, {})
    if "_ref" in facts:
        facts = entries().get(facts["_ref"], {}).get(part, {})
    return facts.get("count")


class File(NamedTuple):
    """A published file: its address, its path for users, and its MD5 checksum.

    path: the shortest end of the address that is unique in its family of datasets: a name,
    ``nq.zip``, or a path, ``NanoNQ/corpus/train-00000-of-00001.parquet``. ``resolve/main`` in the
    hub's addresses is omitted.
    """

    url: str
    path: str
    checksum: str


def files(family: str) -> dict[str, File]:
    """Return the published files of a family of datasets by part, such as ``train/qrels``."""
    listed = {
        key: file
        for key, file in read_json("downloads.json").get(family, {}).items()
        if "expected_md5" in file and "url" in file
    }
    ends = {key: _ends(file["url"]) for key, file in listed.items()}
    times = Counter(chain.from_iterable(ends.values()))
    found = {}
    for key, file in listed.items():
        path = next(end for end in ends[key] if times[end] == 1)
        found[key] = File(file["url"], path, file["expected_md5"])
    return found


def _ends(url: str) -> list[str]:
    """List the ends of an address that consist of whole parts, the shortest first."""
    parts = re.sub("/resolve/[^/]+/", "/", url).split("/")
    return ["/".join(parts[-count:]) for count in range(1, len(parts) + 1)]


def read_json(name: str) -> dict[str, Any]:
    """Read a list of the package: ``metadata.json`` or ``downloads.json``."""
    spec = find_spec("ir_datasets")
    if spec is None or not spec.submodule_search_locations:
        raise InputError(
            "the package ir_datasets is missing; pip install -r envs/requirements.txt installs it"
        )
    path = Path(spec.submodule_search_locations[0], "etc", name)
    return json.loads(path.read_text(encoding="utf-8"))


def few(name: str, known: list[str]) -> str:
    """Suggest the nearest known name, or list the first ones."""
    text = suggestion(name, known)
    if text.startswith("did"):
        return text
    dots = " ..." if len(known) > FEW else ""
    return f"expected {', '.join(known[:FEW])}{dots}"
