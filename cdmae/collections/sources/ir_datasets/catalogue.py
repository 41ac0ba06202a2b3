"""Read the catalogue of datasets and files from the package ir_datasets without importing it."""

from __future__ import annotations

import functools
import json
import os
import re
from collections import Counter
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from cdmae.errors import InputError
from cdmae.fields import suggestion

FEW = 12  # names that a message lists
ROW = {"docs": 500, "queries": 60, "qrels": 30}  # packed bytes per row, for one file per part
# The archives of passages that are not named like their dataset.
PASSAGES = {"msmarco-passage": ("collectionandqueries", "queries"), "dpr-w100": ("docs",)}


@functools.cache
def entries() -> dict[str, dict[str, Any]]:
    """Return the catalogue's datasets: id -> {docs, queries, qrels} -> {count}."""
    return read_json("metadata.json")


def has(name: str, part: str) -> bool:
    """Return whether a dataset has docs, queries, qrels or docpairs."""
    return part in entries().get(name, {})


def below(name: str, part: str) -> list[str]:
    """List the suffixes of a dataset's id that have a part: docs, queries, qrels or docpairs."""
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
    facts = entries().get(facts["_ref"], {}).get(part, {}) if "_ref" in facts else facts
    return facts.get("count")


class File(NamedTuple):
    """A published file: its address, where users put it, the checksum that names it, and its bytes.

    place: the shortest end of the address that no other file of its family shares: a name,
    ``nq.zip``, or a path, ``NanoNQ/corpus/train-00000-of-00001.parquet``. The hub's
    ``resolve/main`` is left out.
    """

    url: str
    place: str
    checksum: str
    size: float


def files(family: str) -> dict[str, File]:
    """Return the published files of a family of datasets by part, such as ``train/qrels``."""
    listed = read_json("downloads.json").get(family, {})
    listed = {key: file for key, file in listed.items() if {"expected_md5", "url"} <= file.keys()}
    parts = {
        key: re.sub("/resolve/[^/]+/", "/", file["url"]).split("/") for key, file in listed.items()
    }
    ends = {
        key: ["/".join(of_url[-size:]) for size in range(1, len(of_url) + 1)]
        for key, of_url in parts.items()
    }
    times = Counter(chain.from_iterable(ends.values()))
    return {
        key: File(
            file["url"],
            next(end for end in ends[key] if times[end] == 1),
            file["expected_md5"],
            _bytes(f"{family}/{key}", file.get("size_hint", 0)),
        )
        for key, file in listed.items()
    }


def needed(name: str) -> list[File]:
    """List the published files of a dataset or its subset, as far as the catalogue lists them.

    A subset without files of its own, such as ``dev/small``, uses its parent's.
    """
    family, _, rest = name.partition("/")
    listed = files(family)
    keys = list(PASSAGES.get(family, ())) if not rest else []
    while rest and not keys:
        keys = [key for key in (rest, *(f"{rest}/{part}" for part in ROW)) if key in listed]
        rest = rest.rpartition("/")[0]
    return [listed[key] for key in keys]


def _bytes(name: str, size: int) -> float:
    """Return the size of a published file, or an estimate if only its number of rows is listed."""
    dataset, _, part = name.rpartition("/")
    return float(size * (ROW[part] if part in ROW and size == counts(dataset, part) else 1))


def home() -> Path:
    """Return the folder in which ir_datasets keeps downloads."""
    return Path(os.environ.get("IR_DATASETS_HOME") or "~/.ir_datasets").expanduser()


def read_json(name: str) -> dict[str, Any]:
    """Read a list of the package: ``metadata.json`` or ``downloads.json``."""
    spec = find_spec("ir_datasets")
    if spec is None or not spec.submodule_search_locations:
        raise InputError(
            "the package ir_datasets is missing; pip install -r envs/requirements.txt brings it"
        )
    return json.loads(
        Path(spec.submodule_search_locations[0], "etc", name).read_text(encoding="utf-8")
    )


def few(name: str, known: list[str]) -> str:
    """Suggest the nearest known name, or list the first ones."""
    text = suggestion(name, known)
    return (
        text
        if text.startswith("did")
        else f"allowed: {', '.join(known[:FEW])}{' ...' * (len(known) > FEW)}"
    )
