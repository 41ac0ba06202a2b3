"""Models of others that a config names, as far as their folders tell before the first job.

Names at the hub tell nothing: the network is not asked before a job needs it. Standard library only, since every start
of the workflow looks here; weights are read by the jobs.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from cdmae.errors import InputError
from cdmae.fields import show

HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[\w.-]+)?")
FAMILIES = {  # the types, in config.json, of checkpoints and generators; what transformers calls their models
    "bert": "Bert", "electra": "Electra", "roberta": "Roberta", "xlm-roberta": "XLMRoberta",
    "distilbert": "DistilBert", "mpnet": "MPNet", "modernbert": "ModernBert",
}  # fmt: skip
ACTIVATIONS = ("gelu", "relu", "silu")  # of a BERT
SIZES = {  # in config.json, as far as it tells, and the most that can be meant
    "num_hidden_layers": 1000, "num_attention_heads": 1000, "hidden_size": 2**16, "intermediate_size": 2**18,
    "embedding_size": 2**16, "max_position_embeddings": 2**20, "vocab_size": 2**24,
    "n_layers": 1000, "n_heads": 1000, "dim": 2**16, "hidden_dim": 2**18,
}  # fmt: skip
DISTILBERT = {"num_hidden_layers": "n_layers", "hidden_size": "dim"}  # its words
BEHIND_PADDING = {"roberta": 1, "xlm-roberta": 1, "mpnet": 1}  # whose positions begin behind this number, or their own
WEIGHTS = ("*.safetensors", "*.bin")
TOKENIZERS = ("tokenizer.json", "vocab.txt", "vocab.json", "sentencepiece.bpe.model")
PIECES = ("WordPiece", "BPE", "Unigram")  # the types, in tokenizer.json, of tokenizers
NAMED = 3  # files of a folder that are named where the right one is not there


def check(model: str, path: str) -> None:
    """Refuse a checkpoint or generator, at `path` in the config, that is not in transformers format or of no family."""
    folder = _folder(model, path)
    if folder is None:
        return
    allowed = f"allowed: a folder in transformers format, of the type {', '.join(FAMILIES)}, or a name at the hub"
    what = f"{path} is {show(model)}"
    if not (folder / "config.json").is_file():
        raise InputError(f"{what}, {_instead(folder, 'config.json')}; {allowed}")
    described = _json(folder / "config.json", dict, what, allowed)
    kind = described.get("model_type")
    if kind not in FAMILIES:
        says = "tells no model_type" if kind is None else f"says model_type {show(kind)}"
        raise InputError(f"{what}, whose config.json {says}; allowed: {', '.join(FAMILIES)}")
    for key, most in SIZES.items():
        size = described.get(key, 1)
        if not isinstance(size, int) or isinstance(size, bool) or not 0 < size <= most:
            raise InputError(f"{what}, whose config.json says {key} {show(size)}; allowed: from 1 to {most:,}")
    activation = described.get("hidden_act", ACTIVATIONS[0])
    if kind == "bert" and activation not in ACTIVATIONS:
        raise InputError(
            f"{what}, whose config.json says hidden_act {show(activation)}; allowed: {', '.join(ACTIVATIONS)}"
        )
    _check_weights(folder, what, allowed)
    if not any((folder / name).is_file() for name in TOKENIZERS):
        raise InputError(f"{what}, {_instead(folder, ' or '.join(TOKENIZERS))}; {allowed}, with its tokenizer")
    if (folder / TOKENIZERS[0]).is_file():
        check_tokenizer(_json(folder / TOKENIZERS[0], dict, what, allowed), f"{what}, whose tokenizer")


def check_tokenizer(parts: dict[str, Any], what: str) -> None:
    """Refuse a tokenizer, as it stands in ``tokenizer.json``, that does not tell words, or does not frame a text."""
    model = (parts.get("model") or {}).get("type")
    if model not in PIECES:
        raise InputError(f"{what} is of the type {show(model)}; allowed: {', '.join(PIECES)}")
    if not parts.get("pre_tokenizer"):
        raise InputError(f"{what} does not divide texts into words: it has no pre_tokenizer; allowed: one with it")
    if not _frames(parts.get("post_processor") or {}):
        raise InputError(f"{what} does not put one special token before and one behind a text; allowed: one that does")


def _frames(processor: dict[str, Any]) -> bool:
    """Tell whether a tokenizer's post-processor puts a special token before a text and one behind it."""
    kind = processor.get("type")
    if kind == "Sequence":
        return any(map(_frames, processor.get("processors", [])))
    if kind == "TemplateProcessing":
        return [next(iter(part)) for part in processor["single"]] == ["SpecialToken", "Sequence", "SpecialToken"]
    return kind in ("BertProcessing", "RobertaProcessing")


def check_retriever(model: str, path: str) -> None:
    """Refuse a foreign retriever, at `path` in the config, that sentence-transformers would not take for a model."""
    folder = _folder(model, path)
    if folder is None:
        return
    allowed = "allowed: a folder in the format of sentence-transformers or transformers, or a name at the hub"
    what = f"{path} is {show(model)}"
    if (folder / "modules.json").is_file():
        _json(folder / "modules.json", list, what, allowed)
    elif (folder / "config.json").is_file():
        if "model_type" not in _json(folder / "config.json", dict, what, allowed):
            raise InputError(f"{what}, whose config.json tells no model_type; {allowed}")
    else:
        raise InputError(f"{what}, {_instead(folder, 'modules.json or config.json')}; {allowed}")
    _check_weights(folder, what, allowed)


def number(model: str, key: str) -> int | None:
    """Return a number in the config.json of a model, or None where there is none, as of a name at the hub."""
    described = _described(model)
    value = described.get(key, described.get(DISTILBERT.get(key, key)))
    return value if isinstance(value, int) else None


def positions(model: str) -> int | None:
    """Return how many tokens a model reads, special ones included, or None where its config.json does not say."""
    number_of, kind = number(model, "max_position_embeddings"), _described(model).get("model_type")
    if number_of is None or kind not in BEHIND_PADDING:
        return number_of
    padding = BEHIND_PADDING[kind] if kind == "mpnet" else number(model, "pad_token_id")
    return number_of - 1 - (BEHIND_PADDING[kind] if padding is None else padding)


def _described(model: str) -> dict[str, Any]:
    """Return the config.json of a model; nothing where it has none that can be read."""
    try:
        described = json.loads((Path(model) / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return described if isinstance(described, dict) else {}


def check_plain(file: Path | str, path: str) -> None:
    """Refuse a file, named at `path` in the config, in whose name Snakemake would fill in what stands for a part."""
    if part := re.search(r"[{}]|<[a-z][a-z0-9_]*>", str(file)):
        raise InputError(f"{path}: the path {file} has {part[0]}, which Snakemake fills in; rename it")


def _folder(model: str, path: str) -> Path | None:
    """Return the folder of a model, or None for a possible name at the hub; raise `InputError` for what is neither.

    A name below a folder that is there is a path: `models/mine` beside a folder `models`.
    """
    folder = Path(model)
    if folder.is_dir():
        for file in folder.iterdir():
            check_plain(file, path)
        return folder
    below = folder.parent != Path() and folder.parent.is_dir()
    if below or model.startswith((".", "/")) or not HUB_NAME.fullmatch(model):
        raise InputError(
            f"{path} is {show(model)}, and {folder.absolute()} is no folder; allowed: a folder, or a name at the hub"
        )
    return None


def _instead(folder: Path, missing: str) -> str:
    """Say what a folder holds that lacks a file."""
    names = sorted(path.name for path in folder.iterdir())
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    content = f"holds {', '.join(names[:NAMED])}{more} but no {missing}" if names else "is empty"
    return f"and {folder.absolute()} {content}"


def _check_weights(folder: Path, what: str, allowed: str) -> None:
    """Refuse a model without weights, which sentence-transformers may keep in a folder of their own."""
    if not any(path for pattern in WEIGHTS for path in folder.rglob(pattern)):
        raise InputError(f"{what}, {_instead(folder, 'weights (model.safetensors or pytorch_model.bin)')}; {allowed}")


def _json(file: Path, kind: type, what: str, allowed: str) -> Any:
    """Read a JSON file of a model; raise `InputError` for a damaged one, or one that holds something else."""
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"{what}, whose {file.name} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"{what}, whose {file.name} is not JSON ({error}); {allowed}") from None
    if not isinstance(content, kind):
        raise InputError(f"{what}, whose {file.name} holds no {'object' if kind is dict else 'list'}; {allowed}")
    return content
