"""Find a published encoder: a local folder, a name at the hub, or none."""

from __future__ import annotations

import json
import os
import threading
import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cdmae.config import pretrained
from cdmae.errors import InputError, cause

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
CLASSIFIER = "ForSequenceClassification"  # ends the class names of cross-encoders


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


def suited(scripts: Mapping[str, float]) -> str:
    """Return the encoder at the hub for texts by the shares of their scripts."""
    return LATIN if scripts.get("LATIN", 0.0) > 0.5 else OTHER


def local(model: str, head: str = "") -> Encoder:
    """Describe the model in a folder, for a head or for the one that its files name.

    Raises `InputError` if the folder contains no model, or one with a vector per word-piece.
    """
    pretrained.check(model, ("--encoder",))
    return _described(model, Path(model), head)


def at_hub(model: str, head: str = "") -> Encoder:
    """Describe a model at the hub like a folder; the run downloads its weights.

    Raises `InputError` if its description can neither be downloaded nor found in the cache.
    """
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
    return _described(model, Path(folder), head)


def _described(model: str, folder: Path, head: str) -> Encoder:
    """Describe a model by the small files in a folder."""
    if pretrained.is_multi_encoder(str(folder)):
        raise InputError(
            f"--encoder: {model} has a vector per word-piece; allowed: a model with one vector per "
            "text, or a sparse one (config/multi.yaml trains multi-vector retrievers)"
        )
    modules = _json(folder / "modules.json", [])
    classes = _json(folder / "config.json", {}).get("architectures")
    named = classes if isinstance(classes, list) else []
    scoring = next((name for name in named if str(name).endswith(CLASSIFIER)), "")
    # a retriever may pool the states of a model of this class
    if scoring and not any("Pooling" in str(module.get("type", "")) for module in modules):
        raise InputError(
            f"--encoder: {model} is a cross-encoder (its config.json has {scoring}), which scores "
            "pairs of texts and has no vectors; allowed: an encoder or a retriever"
        )
    pooling = _json(folder / "1_Pooling/config.json", {})
    normalised = any(str(module.get("type", "")).endswith("Normalize") for module in modules)
    mean = bool(pooling.get("pooling_mode_mean_tokens")) or pooling.get("pooling_mode") == "mean"
    head = head or ("sparse" if pretrained.is_sparse_encoder(str(folder)) else "dense")
    return Encoder(
        model,
        retriever=bool(modules) or head == "sparse",
        head=head,
        pooling="mean" if mean else "cls",
        similarity="cosine" if normalised or mean or not modules else "dot",
        positions=pretrained.positions(str(folder)) or 512,
        width=pretrained.number(str(folder), "hidden_size") or 768,
    )


def answers() -> bool:
    """Check, within `WAIT` seconds, whether the hub can be reached."""
    if os.environ.get("HF_HUB_OFFLINE", "0").lower() not in ("", "0", "false", "no"):
        return False
    address = os.environ.get("HF_ENDPOINT", "https://huggingface.co")
    found: list[bool] = []

    def ask() -> None:
        try:
            with urllib.request.urlopen(f"{address}/api/models?limit=1", timeout=WAIT):
                found.append(True)
        except (OSError, ValueError):
            found.append(False)

    # resolving a name has no time limit of its own
    thread = threading.Thread(target=ask, daemon=True)
    thread.start()
    thread.join(WAIT)
    return found == [True]


def _json(path: Path, default: list | dict) -> list | dict:
    """Read a JSON file; return the default if the file is missing or of another type."""
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return default
    except (OSError, ValueError) as error:
        raise InputError(
            f"--encoder: {path} cannot be read ({error}); repair the file or name another encoder"
        ) from None
    return value if isinstance(value, type(default)) else default
