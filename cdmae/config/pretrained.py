"""Third-party models that a config names: what the small files of their folders say.

The first job that reads a model checks its files. Models at the hub are not looked up before: a job
is the first to use the network. Standard library only.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from cdmae.errors import InputError, Keys
from cdmae.fields import show

# with an optional revision
HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[\w.-]+)?(@[\w.-]+(/[\w.-]+)*)?")
# the model_type in config.json
FAMILIES = (
    "bert", "electra", "roberta", "xlm-roberta", "distilbert", "mpnet", "modernbert", "nomic_bert",
    "gte",
)  # fmt: skip
DISTILBERT = {  # DistilBERT's names for keys of config.json
    "num_hidden_layers": "n_layers", "hidden_size": "dim", "intermediate_size": "hidden_dim",
}  # fmt: skip
SPARSE = "SparseEncoder"  # the model_type of sparse models in sentence-transformers
# the model_type of multi-vector models in sentence-transformers and in PyLate
MULTI = ("MultiVectorEncoder", "ColBERT")
STANFORD = "HF_ColBERT"  # the architecture in config.json of ColBERT's own folders


def check(model: str, keys: Keys) -> None:
    """Refuse a model, at `keys`, that is neither a folder nor a name at the hub.

    A name in an existing folder is a path: `models/mine` if there is a folder `models`.
    """
    path = Path(model)
    is_path = (path.parent != Path() and path.parent.is_dir()) or not HUB_NAME.fullmatch(model)
    if is_path and not path.is_dir():
        words = f" is {show(model)}, and {show(str(path.absolute()))} is not a folder"
        raise InputError(f"{words}; expected a folder, or a name at the hub", keys=keys)


def kind_of_vectors(model: str) -> str:
    """Return the kind of vectors of a folder for sentence-transformers: dense, sparse or multi."""
    options = _described(model, "config_sentence_transformers.json")
    return kind_by(options, _described(model, "config.json"))


def kind_by(options: dict[str, Any], config: dict[str, Any]) -> str:
    """Return the kind of vectors by the contents of a folder's two files of settings."""
    kind = options.get("model_type")
    if kind == SPARSE:
        return "sparse"
    is_stanford = STANFORD in (config.get("architectures") or ())
    return "multi" if kind in MULTI or is_stanford else "dense"


def divided(model: str) -> tuple[str, str]:
    """Split ``name@revision`` of a hub model; the revision defaults to "main", also for folders."""
    name, at, revision = model.partition("@")
    return (name, revision) if at and not Path(model).is_dir() else (model, "main")


def number(model: str, key: str) -> int | None:
    """Return a number from a model's config.json; None if missing, and for names at the hub."""
    described = _described(model, "config.json")
    value = described.get(key, described.get(DISTILBERT.get(key, key)))
    return value if type(value) is int else None


def _described(model: str, name: str) -> dict[str, Any]:
    """Return a JSON file of a model; empty if it cannot be read."""
    try:
        described = json.loads((Path(model) / name).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return described if isinstance(described, dict) else {}
