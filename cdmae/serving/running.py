"""The running server of a results folder; `./run search` asks it instead of loading models."""

from __future__ import annotations

import hashlib
import json
import socket
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cdmae.files import write_json
from cdmae.log import say

FILE = ".server.json"  # in the results folder
WAIT = 60  # seconds for an answer
READ = ("index", "model", "vectors", "tokens")  # the folders in a system's description
Described = dict[str, Any]  # a system for `cdmae.retrieval.asking`


@contextmanager
def announced(results: Path | str, url: str) -> Iterator[None]:
    """Record a server's address in its results folder while the server runs."""
    path = Path(results) / FILE
    record = {"url": url, "host": socket.gethostname()}
    write_json(path, record)
    try:
        yield
    finally:
        if _recorded(path) == record:  # a second server may have replaced it
            path.unlink(missing_ok=True)


def ask(
    results: Path | str, fingerprint: str, *, q: str, system: str, collection: str, k: int
) -> dict[str, Any] | None:
    """Return the answer of the running server (GET /search); None without a usable answer.

    fingerprint: the fingerprint of the system as it is now on disk. The answer of a server that has
    loaded other files is not used.
    """
    record = _recorded(Path(results) / FILE)
    if record is None or record["host"] != socket.gethostname():
        return None
    query = urllib.parse.urlencode({"q": q, "system": system, "collection": collection, "k": k})
    direct = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with direct.open(f"{record['url']}search?{query}", timeout=WAIT) as reply:
            answer = json.load(reply)
    except (OSError, ValueError):  # it was killed, or refuses such a request
        return None
    if not isinstance(answer, dict) or answer.get("fingerprint") != fingerprint:
        say(f"the server at {record['url']} has loaded older results; restart it")
        return None
    return answer


def fingerprint(described: Described, folder: Path | str) -> str:
    """Return a hash of a system's settings and of the sizes and times of the files that it reads.

    folder: the folder of the collection.
    """
    files = [*files_of(described), Path(folder) / "passages.parquet"]
    stamps = [
        (str(path), path.stat().st_size, path.stat().st_mtime_ns)
        for path in sorted({path.resolve() for path in files})
    ]
    return hashlib.sha256(json.dumps([described, stamps], default=str).encode()).hexdigest()


def files_of(described: Described) -> Iterator[Path]:
    """Yield the files that a system and its parts read, except models from the hub."""
    for part in described["parts"]:
        yield from files_of(part)
    for key in READ:
        folder = Path(described.get(key) or "")
        if described.get(key) and folder.is_dir():
            yield from (path.resolve() for path in folder.rglob("*") if path.is_file())


def _recorded(path: Path) -> dict[str, Any] | None:
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
        return record if {"url", "host"} <= record.keys() else None
    except (OSError, ValueError, AttributeError):
        return None
