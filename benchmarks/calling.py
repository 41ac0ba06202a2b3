"""Call a function of the project in a process of its own, as a job of the workflow does.

python -m benchmarks.calling cdmae.retrieval.bm25:build '{"collection": "docs", "folder": "index"}'
"""

from __future__ import annotations

import json
import sys
from importlib import import_module
from typing import Any

from cdmae.cli import ending
from cdmae.job import end_with_parent, hints_of, value_of


def command(function: str, **values: Any) -> list[str]:
    """Return the command that calls a function, ``module:name``; paths may be `Path`."""
    return [sys.executable, "-m", "benchmarks.calling", function, json.dumps(values, default=str)]


def call(name: str, values: dict[str, Any]) -> None:
    """Call a function with plain values, which its annotations turn into paths and settings."""
    end_with_parent()
    module, _, attribute = name.partition(":")
    function = getattr(import_module(module), attribute)
    hints = hints_of(function)
    function(**{key: value_of(hints[key], value, key) for key, value in values.items()})


if __name__ == "__main__":
    ending(lambda: call(sys.argv[1], json.loads(sys.argv[2])))
