"""Find a published encoder: a local folder, a name at the hub, or none."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cdmae.config import pretrained
from cdmae.errors import InputError, cause
from cdmae.files import read_json
from cdmae.log import say

WAIT = 4  # seconds for an answer of the hub
# Published retrievers of 47 and 97 million weights, with Apache's licence and vectors of 384
# numbers, which need no prompts. Their publishers report the best results of open models of these
# sizes: arXiv 2508.21085 and 2605.13521.
ENGLISH = "ibm-granite/granite-embedding-small-english-r2"
OTHER = "ibm-granite/granite-embedding-97m-multilingual-r2"
# the small files of a model, with its tokenizer
DESCRIPTIONS = ["*.json", "*/config.json", "*.txt", "*.model"]
# modules of sentence-transformers that training keeps
KEPT = ("Transformer", "Pooling", "Normalize", "MLMTransformer", "SpladePooling")
SPLADE = {"pooling_strategy": "max", "activation_function": "relu"}  # of our own sparse head


@dataclass(frozen=True)
class Encoder:
    """A published encoder; retriever: whether it was trained to compute vectors of texts.

    folder: with its small files. head: dense or sparse, the vectors that it will be fine-tuned for.
    pooling, similarity: how a dense retriever computes and compares vectors; for another model, how
    it will be fine-tuned. positions: the length of its longest input in word-pieces. prompts: the
    texts before each query and before each passage.
    """

    model: str
    folder: Path
    retriever: bool
    head: str
    pooling: str
    similarity: str
    positions: int
    prompts: tuple[str, str]


def published(model: str, language: str) -> Encoder | None:
    """Return the encoder of `--encoder`, or the hub's default; None for random weights.

    language: of the texts, which decides the default. Raises `InputError` for a model that cannot
    be found or trained.
    """
    if model == "none":
        return None
    name = located(model or (ENGLISH if language == "en" else OTHER))
    try:
        folder = Path(name) if Path(name).is_dir() else _downloaded(name)
    except (OSError, ValueError) as error:  # among them the hub's own errors
        if model:
            raise InputError(
                f"--encoder is {model}, which is neither a folder here nor a model that the hub "
                f"provides ({cause(error)}); check the path or the name"
            ) from None
        say(
            "the hub does not answer: initial weights will be random, which few labels do not "
            "train beyond BM25; to begin with a published model, give --encoder FOLDER"
        )
        return None
    return _described(name, folder)


def located(model: str) -> str:
    """Return the absolute path of a model's folder, or its name at the hub."""
    folder = Path(os.path.expanduser(model))
    if folder.is_dir():
        return str(folder.resolve())
    pretrained.check(model, ("--encoder",))
    return model


def _downloaded(model: str) -> Path:
    """Return a folder with the description of a model at the hub; the run downloads its weights."""
    from huggingface_hub import snapshot_download

    name, revision = pretrained.divided(model)
    return Path(
        snapshot_download(name, revision=revision, allow_patterns=DESCRIPTIONS, etag_timeout=WAIT)
    )


def _described(model: str, folder: Path) -> Encoder:
    """Describe a model by the small files in a folder; refuse a model that cannot be trained."""
    head = pretrained.kind_of_vectors(str(folder))
    if head == "multi":
        raise InputError(
            f"--encoder: {model} has a vector per word-piece; expected a model with one vector per "
            "text, or a sparse one (config/overlays/multi.yaml trains multi-vector retrievers)"
        )
    config = _json(folder / "config.json")
    modules = _json(folder / "modules.json")
    kinds = [str(module.get("type", "")).rpartition(".")[2] for module in modules]
    named = str(config.get("architectures"))
    # a retriever may pool the states of a cross-encoder
    if "ForSequenceClassification" in named and "Pooling" not in kinds:
        raise InputError(
            f"--encoder: {model} is a cross-encoder (its config.json has {named}), which scores "
            "pairs of texts and has no vectors; expected an encoder or a retriever"
        )
    pooling = _pooling(_json(folder / "1_Pooling/config.json"))
    lost = [f"its module {kind}" for kind in kinds if kind not in KEPT]
    if pooling not in ("cls", "mean"):
        lost.append(f"its pooling {pooling}")
    splade = SPLADE | _json(folder / "1_SpladePooling/config.json")
    lost += [f"its {key} {splade[key]}" for key, own in SPLADE.items() if splade[key] != own]
    if config.get("model_type") not in pretrained.FAMILIES:
        lost.append(f"its model_type {config.get('model_type')}")
    if lost:
        raise InputError(
            f"--encoder: training does not keep a part of {model}: {', '.join(lost)}; expected "
            "pooling cls or mean, or SPLADE's max and relu, and one of "
            f"{', '.join(pretrained.FAMILIES)}; as it is, a system of kind external measures it"
        )
    prompts = _json(folder / "config_sentence_transformers.json").get("prompts") or {}
    of_passages = [prompts[name] for name in ("document", "passage", "corpus") if name in prompts]
    # in some families, two positions are never used
    positions = (pretrained.number(str(folder), "max_position_embeddings") or 514) - 2
    longest = _json(folder / "sentence_bert_config.json").get("max_seq_length")
    named = _json(folder / "config_sentence_transformers.json").get("similarity_fn_name")
    is_cosine = "Normalize" in kinds or not modules or named == "cosine"
    is_cosine |= pooling == "mean" and named != "dot"
    return Encoder(
        model,
        folder,
        retriever=bool(modules) or head == "sparse",
        head=head,
        pooling=pooling,
        similarity="cosine" if is_cosine else "dot",
        positions=min(positions, longest or positions),
        prompts=(prompts.get("query") or "", of_passages[0] if of_passages else ""),
    )


def _pooling(config: dict[str, Any]) -> str:
    """Return the pooling of a module, in the old form of its file or in the form of version 6."""
    named = config.get("pooling_mode", [])
    modes = [named] if isinstance(named, str) else list(named)
    for key, value in config.items():
        if key.startswith("pooling_mode_") and value is True:
            modes.append(key.split("_")[2])  # as in pooling_mode_mean_tokens
    return "+".join(modes) or "cls"


def _json(path: Path) -> Any:
    """Read a JSON file; empty if there is none."""
    return read_json(path) if path.exists() else {}
