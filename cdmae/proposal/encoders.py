"""Find a published encoder: a local folder, a name at the hub, or none."""

from __future__ import annotations

import json
import os
import urllib.request
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cdmae.config import pretrained
from cdmae.errors import InputError, cause
from cdmae.fields import show
from cdmae.log import say

WAIT = 4  # seconds for an answer of the hub
# published retrievers of 22 and 118 million weights that run on a laptop
LATIN = "sentence-transformers/all-MiniLM-L6-v2"
OTHER = "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2"
# the small files that describe a model
DESCRIPTIONS = [
    "config.json",
    "modules.json",
    "config_sentence_transformers.json",
    "*_Pooling/*.json",
]


@dataclass(frozen=True)
class Encoder:
    """A published encoder; retriever: whether it was trained to compute vectors of texts.

    head: dense or sparse, the vectors that it will be fine-tuned for.
    pooling, similarity: how a dense retriever computes and compares vectors; for another model, how
    it will be fine-tuned.
    positions: the length of its longest input in word-pieces, if known. width: of its states.
    """

    model: str
    retriever: bool
    head: str
    pooling: str
    similarity: str
    positions: int
    width: int


def published(model: str, head: str, latin: float) -> Encoder | None:
    """Return the encoder of `--encoder`, or the hub's default; None for random weights.

    head: of `--head`; empty for the one that the model's files name. latin: the share of Latin
    letters in the texts, which decides the default.
    """
    if model == "none":
        return None
    if not model and not _answers():
        say(
            "the hub does not answer: initial weights will be random; "
            "to begin with a published model, give --encoder FOLDER"
        )
        return None
    model = model or (LATIN if latin > 0.5 else OTHER)
    folder = Path(os.path.expanduser(model))
    if folder.is_dir():
        model = str(folder.resolve())
        return _described(model, Path(model), head)
    if not pretrained.HUB_NAME.fullmatch(model):
        raise InputError(
            f"--encoder is {show(model)}, but {show(str(folder.absolute()))} is no folder; "
            f"expected the folder of a model, or a name at the hub such as {LATIN}"
        )
    return _described(model, _downloaded(model), head)


def _answers() -> bool:
    """Check, within `WAIT` seconds, whether the hub can be reached."""
    if os.environ.get("HF_HUB_OFFLINE", "0").lower() not in ("", "0", "false", "no"):
        return False
    address = os.environ.get("HF_ENDPOINT", "https://huggingface.co")
    try:
        with urllib.request.urlopen(f"{address}/api/models?limit=1", timeout=WAIT):
            return True
    except (OSError, ValueError):
        return False


def _downloaded(model: str) -> Path:
    """Return a folder with the description of a model at the hub; the run downloads its weights."""
    from huggingface_hub import snapshot_download

    name, revision = pretrained.divided(model)
    try:
        folder = snapshot_download(
            name, revision=revision, allow_patterns=DESCRIPTIONS, etag_timeout=WAIT
        )
    except (OSError, ValueError) as error:  # among them the hub's own errors
        raise InputError(
            f"--encoder: the hub does not give the model {model}: {cause(error)}; check the name, "
            "or give a folder"
        ) from None
    return Path(folder)


def _described(model: str, folder: Path, head: str) -> Encoder:
    """Describe a model by the small files in a folder, for a head or the one that they name."""
    vectors = pretrained.kind_of_vectors(str(folder))
    if vectors == "multi":
        raise InputError(
            f"--encoder: {model} has a vector per word-piece; expected a model with one vector per "
            "text, or a sparse one (config/overlays/multi.yaml trains multi-vector retrievers)"
        )
    modules = _json(folder / "modules.json") or []
    pooling = _json(folder / "1_Pooling/config.json") or {}
    kinds = [str(module.get("type", "")) for module in modules]
    named = str((_json(folder / "config.json") or {}).get("architectures"))
    # a retriever may pool the states of a cross-encoder
    if "ForSequenceClassification" in named and not any("Pooling" in kind for kind in kinds):
        raise InputError(
            f"--encoder: {model} is a cross-encoder (its config.json has {named}), which scores "
            "pairs of texts and has no vectors; expected an encoder or a retriever"
        )
    normalised = any(kind.endswith("Normalize") for kind in kinds)
    mean = bool(pooling.get("pooling_mode_mean_tokens")) or pooling.get("pooling_mode") == "mean"
    head = head or vectors
    return Encoder(
        model,
        retriever=bool(modules) or head == "sparse",
        head=head,
        pooling="mean" if mean else "cls",
        similarity="cosine" if normalised or mean or not modules else "dot",
        # in some families, two positions are never used
        positions=(pretrained.number(str(folder), "max_position_embeddings") or 512) - 2,
        width=pretrained.number(str(folder), "hidden_size") or 768,
    )


def _json(path: Path) -> Any:
    """Read a JSON file; None if there is none."""
    if not path.exists():
        return None
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(
            f"--encoder: {path} cannot be read ({error}); repair the file or name another encoder"
        ) from None
