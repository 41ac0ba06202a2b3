"""Models of others that a config names, as far as their folders tell before the first job.

Names at the hub tell nothing: the network is not asked before a job needs it. Standard library only, since every start
of the workflow looks here; weights are read by the jobs.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cdmae.errors import InputError
from cdmae.fields import Keys, dotted, refusal, show

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
WEIGHTS = ("**/*.safetensors", "**/*.bin")  # sentence-transformers may keep them in a folder of their own
NO_WEIGHTS = "weights (model.safetensors or pytorch_model.bin)"
TOKENIZERS = ("tokenizer.json", "vocab.txt", "vocab.json", "sentencepiece.bpe.model")
PIECES = ("WordPiece", "BPE", "Unigram")  # the types, in tokenizer.json, of tokenizers
NAMED = 3  # files of a folder that are named where the right one is not there


@dataclass(frozen=True)
class _Folder:
    """The folder of a model that the config names at some keys; `allowed` ends what is said of it."""

    model: str
    keys: Keys
    allowed: str

    @classmethod
    def of(cls, model: str, keys: Keys, form: str) -> _Folder | None:
        """Look at a model: None is a possible name at the hub; raises `InputError` for what is no folder either.

        A name below a folder that is there is a path: `models/mine` beside a folder `models`.
        """
        path, self = Path(model), cls(model, keys, f"allowed: a folder in {form}, or a name at the hub")
        if path.is_dir():
            for file in path.iterdir():
                check_plain(file, keys)
            return self
        below = path.parent != Path() and path.parent.is_dir()
        if below or model.startswith((".", "/")) or not HUB_NAME.fullmatch(model):
            raise self.wrong(f"and {path.absolute()} is no folder", "allowed: a folder, or a name at the hub")
        return None

    def wrong(self, words: str, allowed: str = "") -> InputError:
        """Make the error for a model of which `words` are true."""
        return refusal(self.keys, f" is {show(self.model)}, {words}; {allowed or self.allowed}")

    def need(self, called: str, *patterns: str, more: str = "") -> None:
        """Refuse a folder without a file of some patterns."""
        folder = Path(self.model)
        if not any(path for pattern in patterns for path in folder.glob(pattern)):
            names = sorted(path.name for path in folder.iterdir())
            others = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
            content = f"holds {', '.join(names[:NAMED])}{others} but no {called}" if names else "is empty"
            raise self.wrong(f"and {folder.absolute()} {content}", self.allowed + more)

    def json(self, name: str, kind: type) -> Any:
        """Read a JSON file; refuse a damaged one, or one that holds something else."""
        try:
            content = json.loads((Path(self.model) / name).read_text(encoding="utf-8"))
        except OSError as error:
            raise self.wrong(f"whose {name} cannot be read: {error.strerror}") from None
        except (ValueError, RecursionError) as error:
            raise self.wrong(f"whose {name} is not JSON ({error})") from None
        if not isinstance(content, kind):
            raise self.wrong(f"whose {name} holds no {'object' if kind is dict else 'list'}")
        return content


def check(model: str, keys: Keys) -> None:
    """Refuse a checkpoint or generator, at `keys` of the config, that is not in transformers format or of no family."""
    folder = _Folder.of(model, keys, f"transformers format, of the type {', '.join(FAMILIES)}")
    if folder is None:
        return
    folder.need("config.json", "config.json")
    described = folder.json("config.json", dict)
    kind = described.get("model_type")
    limits = {"model_type": (kind in FAMILIES, ", ".join(FAMILIES))}
    for key, most in SIZES.items():
        size = described.get(key, 1)
        limits[key] = (type(size) is int and 0 < size <= most, f"from 1 to {most:,}")
    known = kind != "bert" or described.get("hidden_act", ACTIVATIONS[0]) in ACTIVATIONS
    limits["hidden_act"] = (known, ", ".join(ACTIVATIONS))
    for key, (fits, allowed) in limits.items():
        if not fits:
            says = f"says {key} {show(described[key])}" if key in described else f"tells no {key}"
            raise folder.wrong(f"whose config.json {says}", f"allowed: {allowed}")
    folder.need(NO_WEIGHTS, *WEIGHTS)
    folder.need(" or ".join(TOKENIZERS), *TOKENIZERS, more=", with its tokenizer")
    if (Path(model) / TOKENIZERS[0]).is_file():
        try:
            check_tokenizer(folder.json(TOKENIZERS[0], dict), f"{dotted(keys)} is {show(model)}, whose tokenizer")
        except InputError as error:
            raise InputError(str(error), keys=keys) from None


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


def check_retriever(model: str, keys: Keys) -> None:
    """Refuse a foreign retriever, at `keys` of the config, that sentence-transformers would not take for a model."""
    folder = _Folder.of(model, keys, "the format of sentence-transformers or transformers")
    if folder is None:
        return
    folder.need("modules.json or config.json", "modules.json", "config.json")
    if (Path(model) / "modules.json").is_file():
        folder.json("modules.json", list)
    elif "model_type" not in folder.json("config.json", dict):
        raise folder.wrong("whose config.json tells no model_type")
    folder.need(NO_WEIGHTS, *WEIGHTS)


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


def check_plain(file: Path | str, keys: Keys) -> None:
    """Refuse a file, named at `keys` of the config, in whose name Snakemake would fill in what stands for a part."""
    if part := re.search(r"[{}]|<[a-z][a-z0-9_]*>", str(file)):
        raise refusal(keys, f": the path {file} has {part[0]}, which Snakemake fills in; rename it")
