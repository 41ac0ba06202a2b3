"""Third-party models that a config names: what the small files of their folders say.

Before the first job it is only checked that a folder exists and describes a model; the first job
that reads the model checks its weights and its tokenizer. Models at the hub are not checked before:
nothing uses the network before a job needs it. Standard library only.
"""

from __future__ import annotations

import json
import re
import struct
from pathlib import Path
from typing import Any

from cdmae.fields import Keys, refusal, show

# with an optional revision
HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[\w.-]+)?(@[\w.-]+(/[\w.-]+)*)?")
# the prefixes of transformers' class names, by the model_type in config.json
FAMILIES = {
    "bert": "Bert", "electra": "Electra", "roberta": "Roberta", "xlm-roberta": "XLMRoberta",
    "distilbert": "DistilBert", "mpnet": "MPNet", "modernbert": "ModernBert",
    "nomic_bert": "NomicBert", "gte": "Gte",
}  # fmt: skip
DISTILBERT = {  # DistilBERT's names for keys of config.json
    "num_hidden_layers": "n_layers", "num_attention_heads": "n_heads", "hidden_size": "dim",
    "intermediate_size": "hidden_dim",
}  # fmt: skip
SPARSE = "SparseEncoder"  # the model_type of sparse models in sentence-transformers
# the model_type of multi-vector models in sentence-transformers and in PyLate
MULTI = ("MultiVectorEncoder", "ColBERT")
STANFORD = "HF_ColBERT"  # the architecture in config.json of ColBERT's own folders
# beginnings of the names of a language-model head's weights
LM_HEADS = ("cls.predictions.", "generator_predictions.", "lm_head.", "vocab_transform.", "head.")
# families whose positions begin after pad_token_id, with its default
BEHIND_PADDING = {"roberta": 1, "xlm-roberta": 1, "mpnet": 1}


def check(model: str, keys: Keys, files: tuple[str, ...] = ("config.json",)) -> None:
    """Refuse a model, at `keys`, that is neither a folder with one of `files` nor a hub's name.

    A name in an existing folder is a path: `models/mine` if there is a folder `models`.
    """
    path = Path(model)
    if path.is_dir():
        if not any((path / name).is_file() for name in files):
            words = f", a folder without {' or '.join(files)}; expected a model's folder"
            raise refusal(keys, f" is {show(model)}{words}, or a name at the hub")
    elif (path.parent != Path() and path.parent.is_dir()) or not HUB_NAME.fullmatch(model):
        words = f", and {show(str(path.absolute()))} is not a folder"
        raise refusal(keys, f" is {show(model)}{words}; expected a folder, or a name at the hub")


def has_lm_head(model: str) -> bool:
    """Return whether a model has a language-model head; True where its small files do not tell.

    These are the index of weights in several files, and the header of a safetensors file.
    """
    folder = Path(model)
    names = _described(model, "model.safetensors.index.json").get("weight_map")
    try:
        with (folder / "model.safetensors").open("rb") as file:
            (length,) = struct.unpack("<Q", file.read(8))
            names = json.loads(file.read(length))
    except (OSError, ValueError, OverflowError, struct.error):
        pass  # the job that reads the model reports a damaged file
    return names is None or any(name.startswith(LM_HEADS) for name in names)


def is_sparse_encoder(model: str) -> bool:
    """Return whether a folder is a `SparseEncoder` of sentence-transformers."""
    return _described(model, "config_sentence_transformers.json").get("model_type") == SPARSE


def is_multi_encoder(model: str) -> bool:
    """Return whether a folder is a model with a vector per word-piece."""
    described = _described(model, "config_sentence_transformers.json")
    stanford = STANFORD in (_described(model).get("architectures") or ())
    return described.get("model_type") in MULTI or stanford


def divided(model: str) -> tuple[str, str]:
    """Split ``name@revision`` of a hub model; the revision defaults to "main", also for folders."""
    name, at, revision = model.partition("@")
    return (name, revision) if at and not Path(model).is_dir() else (model, "main")


def number(model: str, key: str) -> int | None:
    """Return a number from a model's config.json; None if missing, and for names at the hub."""
    described = _described(model)
    value = described.get(key, described.get(DISTILBERT.get(key, key)))
    return value if type(value) is int else None


def positions(model: str) -> int | None:
    """Return a model's maximum input in tokens, including special ones; None if not recorded."""
    number_of = number(model, "max_position_embeddings")
    kind = _described(model).get("model_type")
    if number_of is None or not isinstance(kind, str) or kind not in BEHIND_PADDING:
        return number_of
    padding = BEHIND_PADDING[kind] if kind == "mpnet" else number(model, "pad_token_id")
    return number_of - 1 - (BEHIND_PADDING[kind] if padding is None else padding)


def _described(model: str, name: str = "config.json") -> dict[str, Any]:
    """Return a JSON file of a model; empty if it cannot be read."""
    try:
        described = json.loads((Path(model) / name).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return described if isinstance(described, dict) else {}
