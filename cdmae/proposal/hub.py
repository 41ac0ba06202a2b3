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
from cdmae.errors import InputError

WAIT = 4  # seconds for an answer of the hub
# published retrievers of 22 and 118 million weights that run on a laptop
LATIN = "sentence-transformers/all-MiniLM-L6-v2"
OTHER = "sentence-transformers/paraphrase-multilingual-MiniLM-L12-v2"


@dataclass(frozen=True)
class Encoder:
    """A published encoder; retriever: whether it was trained to compute vectors of texts.

    pooling, similarity: how a retriever computes and compares vectors; for another model, how it
    will be fine-tuned.
    positions: the length of its longest input in word-pieces, if known.
    """

    model: str
    retriever: bool
    pooling: str
    similarity: str
    positions: int


def suited(scripts: Mapping[str, float]) -> str:
    """Return the encoder at the hub for texts by the shares of their scripts."""
    return LATIN if scripts.get("LATIN", 0.0) > 0.5 else OTHER


def local(model: str) -> Encoder:
    """Describe the model in a folder; raise `InputError` if the folder contains no model."""
    folder = Path(model)
    pretrained.check(model, ("--encoder",))
    positions = pretrained.positions(model) or 512
    modules = _json(folder / "modules.json", [])
    pooling = _json(folder / "1_Pooling/config.json", {})
    normalised = any(str(module.get("type", "")).endswith("Normalize") for module in modules)
    mean = bool(pooling.get("pooling_mode_mean_tokens")) or pooling.get("pooling_mode") == "mean"
    return Encoder(
        model,
        bool(modules),
        "mean" if mean else "cls",
        "cosine" if normalised or mean or not modules else "dot",
        positions,
    )


def at_hub(model: str) -> Encoder:
    """Describe a model at the hub; the run downloads its files."""
    return Encoder(model, model.startswith("sentence-transformers/"), "mean", "cosine", 512)


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
