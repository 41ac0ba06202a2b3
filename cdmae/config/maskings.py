"""What masking strategies say about themselves.

The files in ``cdmae/masking/strategies`` import NumPy and numba, which the workflow's start must
not, so their two constants are read from the text:

``IN_WORDS``: a description of the masked words for model cards.

``READS``: what the strategy needs besides the passages, with the settings that give it:
``importance`` or only the ``ngrams`` behind it (`importance`), the noise ``sigma`` (`sigma`), and
an estimate with the ``unit word``.
"""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path
from typing import Any

from cdmae.errors import InputError

FOLDER = Path(__file__).parent.parent / "masking" / "strategies"
READ = ("importance", "ngrams", "sigma", "unit word")


@cache
def _constants(name: str) -> dict[str, Any]:
    found = {}
    path = FOLDER / f"{name}.py"
    for part in ast.parse(path.read_text(encoding="utf-8")).body:
        name = getattr(part.targets[0], "id", "") if isinstance(part, ast.Assign) else ""
        if name in ("IN_WORDS", "READS"):
            found[name] = ast.literal_eval(part.value)
    if not found.get("IN_WORDS"):
        raise InputError(f"{path} has no IN_WORDS; expected a description of the words it masks")
    return found


def reads(name: str, *needs: str) -> bool:
    """Return whether a strategy reads one of the `needs`, which are in `READ`."""
    return bool({*needs} & {*_constants(name).get("READS", ())})


def in_words(name: str) -> str:
    """Describe the words that a strategy masks."""
    return _constants(name)["IN_WORDS"]
