"""Read English text for the benchmarks without a download: docstrings of installed packages."""

from __future__ import annotations

import re
import sysconfig
from pathlib import Path

import pyarrow as pa

from cdmae.collections.store import read_passages

STRING = re.compile(r'"""(.{100,}?)"""', re.DOTALL)


def passages(letters: int, collection: Path | None = None) -> pa.Table:
    """Return passages (title, text) with about the given number of letters in all.

    collection: a folder of a collection; without it, text of installed packages
    """
    if collection is not None:
        found = read_passages(collection, ["title", "text"]).to_pylist()
        texts = [(each["title"], each["text"]) for each in found]
    else:
        texts = [("", text) for text in _documentation(letters)]
    size = 0
    for number, (title, text) in enumerate(texts):
        size += len(title) + len(text)
        if size > letters:
            texts = texts[: number + 1]
            break
    return pa.table({"title": [title for title, _ in texts], "text": [text for _, text in texts]})


def _documentation(letters: int) -> list[str]:
    found: dict[str, None] = {}
    size = 0
    for name in ("stdlib", "purelib"):
        for path in sorted(Path(sysconfig.get_path(name)).rglob("*.py")):
            for text in STRING.findall(path.read_text(encoding="utf-8", errors="replace")):
                if text not in found:
                    found[text] = None
                    size += len(text)
            if size > letters:
                return list(found)
    return list(found)
