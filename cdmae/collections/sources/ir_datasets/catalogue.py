"""What ir_datasets says of its datasets and their files, read from the package without importing it."""

from __future__ import annotations

import functools
import json
import os
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

from cdmae.errors import InputError
from cdmae.fields import suggestion

FEW = 12  # names that a message lists
ROW = {"docs": 500, "queries": 60, "qrels": 30}  # bytes, packed, of parts that are a file each
# The archives of passages that are not named like their dataset.
PASSAGES = {"msmarco-passage": ("collectionandqueries", "queries"), "dpr-w100": ("docs",)}


@functools.cache
def entries() -> dict[str, dict[str, Any]]:
    """Return what ir_datasets says of its datasets: id -> {docs, queries, qrels} -> {count}."""
    return read_json("metadata.json")


def has(name: str, part: str) -> bool:
    """Tell whether a dataset has docs, queries, qrels or docpairs."""
    return part in entries().get(name, {})


def below(name: str, part: str) -> list[str]:
    """List what follows the name of a dataset in the ids of its parts that have docs, queries, qrels or docpairs."""
    return [key.removeprefix(f"{name}/") for key in entries() if key.startswith(f"{name}/") and has(key, part)]


def collections() -> list[str]:
    """List the datasets with passages of their own."""
    return [name for name, parts in entries().items() if "_ref" not in parts.get("docs", {"_ref": ""})]


def counts(name: str, part: str) -> int | None:
    """Return how many docs, queries or qrels a dataset has; None where the catalogue does not say."""
    facts = entries().get(name, {}).get(part, {})
    facts = entries().get(facts["_ref"], {}).get(part, {}) if "_ref" in facts else facts
    return facts.get("count")


def files(family: str) -> dict[str, str]:
    """Return the published files of a family of datasets: address -> as much of its end as no other one of them has.

    That is a name, ``nq.zip``, or the place in a folder, ``NanoNQ/corpus/train-00000-of-00001.parquet``: the hub's
    ``resolve/main`` is no part of it.
    """
    listed = read_json("downloads.json").get(family, {}).values()
    parts = {file["url"]: file["url"].split("/") for file in listed if {"expected_md5", "url"} <= file.keys()}
    for address, place in parts.items():
        if "resolve" in place:
            at = place.index("resolve")
            parts[address] = place[:at] + place[at + 2 :]
    ends = Counter("/".join(place[-size:]) for place in parts.values() for size in range(1, len(place) + 1))
    return {
        address: next(end for size in range(1, len(place) + 1) if ends[end := "/".join(place[-size:])] == 1)
        for address, place in parts.items()
    }


class Archive(NamedTuple):
    """A published file: its name, its checksum, by which ir_datasets keeps it, and its bytes."""

    file: str
    checksum: str
    size: int


def archives(name: str) -> list[Archive]:
    """List the published files of a dataset or of a part of it, as far as the catalogue tells.

    A part that has none of its own, such as ``dev/small``, lies in those of what it is a part of.
    """
    family, _, rest = name.partition("/")
    listed = read_json("downloads.json").get(family, {})
    keys = list(PASSAGES.get(family, ())) if not rest else []
    while rest and not keys:
        keys = [key for key in (rest, *(f"{rest}/{part}" for part in ROW)) if key in listed]
        rest = rest.rpartition("/")[0]
    named = files(family)
    return [
        Archive(named[listed[key]["url"]], listed[key]["expected_md5"], _bytes(f"{family}/{key}", listed[key]))
        for key in keys
        if {"url", "expected_md5", "size_hint"} <= listed[key].keys()
    ]


def _bytes(name: str, file: dict[str, Any]) -> int:
    """Return the size of a published file; where the list has its number of rows instead, estimate from that."""
    dataset, _, part = name.rpartition("/")
    rows = part in ROW and file["size_hint"] == counts(dataset, part)
    return file["size_hint"] * (ROW[part] if rows else 1)


def home() -> Path:
    """Return the folder in which ir_datasets keeps what it fetches."""
    return Path(os.environ.get("IR_DATASETS_HOME") or "~/.ir_datasets").expanduser()


def read_json(name: str) -> dict[str, Any]:
    """Read a list that comes with the package: ``metadata.json`` or ``downloads.json``."""
    spec = find_spec("ir_datasets")
    if spec is None or not spec.submodule_search_locations:
        raise InputError("the package ir_datasets is missing; pip install -r envs/requirements.txt brings it")
    return json.loads(Path(spec.submodule_search_locations[0], "etc", name).read_text(encoding="utf-8"))


def few(name: str, known: list[str]) -> str:
    """Name the nearest of the known names, or the first ones."""
    text = suggestion(name, known)
    return text if text.startswith("did") else f"allowed: {', '.join(known[:FEW])}{' ...' * (len(known) > FEW)}"
