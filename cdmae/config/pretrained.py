"""Check the folders of third-party models that a config names, before the first job.

Models at the hub are not checked here: nothing uses the network before a job needs it. Standard
library only, because every start of the workflow runs these checks. They read only the headers of
weights.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cdmae.config import weight_files
from cdmae.config.tokenizer_files import check_ids
from cdmae.config.tokenizer_files import check_tokenizer as check_tokenizer
from cdmae.config.tokenizer_files import part as part
from cdmae.config.weight_files import Weight
from cdmae.errors import InputError
from cdmae.fields import Keys, dotted, refusal, show

# with an optional revision
HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[\w.-]+)?(@[\w.-]+(/[\w.-]+)*)?")
# the prefixes of transformers' class names, by the model_type in config.json
FAMILIES = {
    "bert": "Bert", "electra": "Electra", "roberta": "Roberta", "xlm-roberta": "XLMRoberta",
    "distilbert": "DistilBert", "mpnet": "MPNet", "modernbert": "ModernBert",
}  # fmt: skip
ACTIVATIONS = ("gelu", "relu", "silu")  # allowed for BERT
SIZES = {  # sizes in config.json, and their largest plausible values
    "num_hidden_layers": 1000, "num_attention_heads": 1000, "hidden_size": 2**16,
    "intermediate_size": 2**18, "embedding_size": 2**16, "max_position_embeddings": 2**20,
    "vocab_size": 2**24, "type_vocab_size": 1000, "num_labels": 2**16, "n_layers": 1000,
    "n_heads": 1000, "dim": 2**16, "hidden_dim": 2**18,
}  # fmt: skip
SHARES = (  # in config.json: probabilities
    "hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout", "dropout",
    "attention_dropout", "embedding_dropout", "mlp_dropout", "qa_dropout", "seq_classif_dropout",
)  # fmt: skip
POSITIVE = ("layer_norm_eps", "norm_eps", "initializer_range")  # numbers in config.json
# number types of weights that can be read
DTYPES = ("float32", "float16", "bfloat16", "float64")
DISTILBERT = {  # DistilBERT's names for keys of config.json
    "num_hidden_layers": "n_layers", "num_attention_heads": "n_heads", "hidden_size": "dim",
    "intermediate_size": "hidden_dim",
}  # fmt: skip
BASES = {  # possible prefixes of the names of an encoder's weights
    "bert": "bert", "electra": "electra", "roberta": "roberta", "xlm-roberta": "roberta",
    "distilbert": "distilbert", "mpnet": "mpnet", "modernbert": "model",
}  # fmt: skip
SPARSE = "SparseEncoder"  # the model_type of sparse models in sentence-transformers
# the model_type of multi-vector models in sentence-transformers and in PyLate
MULTI = ("MultiVectorEncoder", "ColBERT")
STANFORD = "HF_ColBERT"  # the architecture in config.json of ColBERT's own folders
# beginnings of the names of a language-model head's weights
LM_HEADS = ("cls.predictions.", "generator_predictions.", "lm_head.", "vocab_transform.", "head.")
LAYER = r"(?:encoder\.layer|transformer\.layer|layers)\.(\d+)\."
STORED = {  # names of weights, without the prefix in BASES, and their sizes' keys in config.json
    r"embeddings\.(?:word|tok)_embeddings\.weight": ("vocab_size", "embedding_size"),
    r"embeddings\.position_embeddings\.weight": ("max_position_embeddings", "embedding_size"),
    r"embeddings\.token_type_embeddings\.weight": ("type_vocab_size", "embedding_size"),
    LAYER + r"(?:intermediate\.dense|ffn\.lin1)\.weight": ("intermediate_size", "hidden_size"),
}
# families whose positions begin after pad_token_id, with its default
BEHIND_PADDING = {"roberta": 1, "xlm-roberta": 1, "mpnet": 1}
NO_WEIGHTS = "weights (model.safetensors or pytorch_model.bin)"
TOKENIZERS = ("tokenizer.json", "vocab.txt", "vocab.json", "sentencepiece.bpe.model")
# of sequence-to-sequence models
WRITERS_TOKENIZERS = (*TOKENIZERS, "spiece.model", "source.spm")
# the model_type of an encoder and a decoder, each with its own config in config.json
COMPOSED = "encoder-decoder"
# names of the word embeddings of a sequence-to-sequence model
SHARED = ("shared.weight", "model.shared.weight")
WILDCARD = re.compile(r"[{}]|<[a-z][a-z0-9_]*>")  # in a path: the wildcards that Snakemake replaces
NAMED = 3  # the most files that a message lists if the right file is missing


@dataclass(frozen=True)
class _Folder:
    """The folder of a model that the config names at `keys`; `allowed` ends error messages."""

    model: str
    keys: Keys
    allowed: str

    @classmethod
    def of(cls, model: str, keys: Keys, form: str) -> _Folder | None:
        """Return a model's folder; None if `model` can be a name at the hub.

        form: the format of the folder, for messages.

        Raises `InputError` if it is neither. A name in an existing folder is a path: `models/mine`
        if there is a folder `models`.
        """
        self = cls(model, keys, f"allowed: a folder in {form}, or a name at the hub")
        path = Path(model)
        try:
            names = os.listdir(path) if path.is_dir() else None
            below = path.parent != Path() and path.parent.is_dir()
        except (
            OSError,
            ValueError,
        ) as error:  # a name that is too long, a folder that may not be read
            raise self.wrong(
                f"which cannot be read: {getattr(error, 'strerror', None) or error}"
            ) from None
        if names is not None:
            filled_in = [name for name in names if WILDCARD.search(name)]
            check_plain(path / filled_in[0] if filled_in else path, keys)
            return self
        if below or model.startswith((".", "/")) or not HUB_NAME.fullmatch(model):
            raise self.wrong(
                f"and {show(str(path.absolute()))} is not a folder",
                "allowed: a folder, or a name at the hub",
            )
        return None

    def wrong(self, words: str, allowed: str = "") -> InputError:
        """Return the error for a model; `words`: a description of the mistake."""
        return refusal(self.keys, f" is {show(self.model)}, {words}; {allowed or self.allowed}")

    def need(self, called: str, *names: str, more: str = "") -> None:
        """Refuse a folder with no file in `names`; the first existing file must have content."""
        folder = Path(self.model)
        found = [folder / name for name in names if os.path.lexists(folder / name)]
        if not found:
            there = sorted(path.name for path in folder.iterdir())
            others = f" and {len(there) - NAMED} more" if len(there) > NAMED else ""
            content = (
                f"contains {', '.join(there[:NAMED])}{others} but no {called}"
                if there
                else "is empty"
            )
            raise self.wrong(f"and {folder.absolute()} {content}", self.allowed + more)
        try:
            weight_files.check_file(found[0])
        except (weight_files.Damaged, OSError) as error:
            raise self.damaged(error, found[0]) from None

    def json(self, name: str, kind: type) -> Any:
        """Read a JSON file; refuse a damaged file or content of another type."""
        path = Path(self.model) / name
        try:
            weight_files.check_file(path)
            content = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, weight_files.Damaged) as error:
            raise self.damaged(error, path) from None
        except (ValueError, RecursionError) as error:
            raise self.wrong(f"whose {name} is not JSON ({error})") from None
        if not isinstance(content, kind):
            raise self.wrong(f"whose {name} is not {'an object' if kind is dict else 'a list'}")
        return content

    def damaged(self, error: Exception, path: Path) -> InputError:
        """Return the error for a file that cannot be read."""
        if isinstance(error, OSError):
            return self.wrong(f"whose {path.name} cannot be read: {error.strerror}")
        return self.wrong(f"whose {error}")

    def weights(self, place: Path) -> dict[str, Weight] | None:
        """Return the weights in a folder by name; None for pickles.

        Refuses damaged and missing files.
        """
        path = weight_files.find(place)
        if path is None:
            self.need(NO_WEIGHTS)
        try:
            return weight_files.read(path)
        except (weight_files.Damaged, OSError) as error:
            raise self.damaged(error, path) from None


def check(model: str, keys: Keys) -> None:
    """Refuse a checkpoint or generator, at `keys`, of another format or an unknown family."""
    folder = _Folder.of(model, keys, f"transformers format, of the type {', '.join(FAMILIES)}")
    if folder is None:
        return
    folder.need("config.json", "config.json")
    described = folder.json("config.json", dict)
    if words := contradiction(described):
        raise folder.wrong(f"whose config.json {words[0]}", f"allowed: {words[1]}")
    weights = folder.weights(Path(model))
    if words := _misfit(described, weights, Path(model)):
        raise folder.wrong(words, "allowed: a model whose config.json describes its weights")
    folder.need(" or ".join(TOKENIZERS), *TOKENIZERS, more=", with its tokenizer")
    if os.path.lexists(Path(model) / "tokenizer_config.json"):
        folder.json("tokenizer_config.json", dict)
    if (Path(model) / TOKENIZERS[0]).is_file():
        what = f"{dotted(keys)} is {show(model)}, whose tokenizer"
        parts = folder.json(TOKENIZERS[0], dict)
        try:
            check_tokenizer(parts, what, described.get("vocab_size"))
        except InputError as error:
            raise InputError(str(error), keys=keys) from None


def contradiction(described: dict[str, Any]) -> tuple[str, str] | None:
    """Return a mistake in a checkpoint's config.json and the allowed values, or None."""
    kind = described.get("model_type")
    known = isinstance(kind, str) and kind in FAMILIES
    limits = {"model_type": (known, ", ".join(FAMILIES))}
    for key, most in SIZES.items():
        size = described.get(key, 1)
        limits[key] = (type(size) is int and 0 < size <= most, f"from 1 to {most:,}")
    for key in SHARES:
        limits[key] = (_is_number(described.get(key), 0, 1), "from 0 to 1")
    for key in POSITIVE:
        limits[key] = (_is_number(described.get(key), 0, 1000), "a number from 0 to 1000")
    for key in ("dtype", "torch_dtype"):
        limits[key] = (described.get(key) in (None, *DTYPES), ", ".join(DTYPES))
    limits["is_decoder"] = (described.get("is_decoder") in (None, False), "false")
    absolute = described.get("position_embedding_type") in (None, "absolute")
    limits["position_embedding_type"] = (absolute, "absolute")
    usual = kind != "bert" or described.get("hidden_act", ACTIVATIONS[0]) in ACTIVATIONS
    limits["hidden_act"] = (usual, ", ".join(ACTIVATIONS))
    for key, (fits, allowed) in limits.items():
        if not fits:
            return (
                f"has {key} {show(described[key])}" if key in described else f"has no {key}"
            ), allowed
    heads = size_in(described, "num_attention_heads")
    width = size_in(described, "hidden_size")
    if heads and width and width % heads:
        return (
            f"has {heads:,} attention heads and a width of {width:,}",
            "heads that divide the width",
        )
    padding = described.get("pad_token_id")
    most = described.get("vocab_size", SIZES["vocab_size"])
    if padding is not None and not (type(padding) is int and 0 <= padding < most):
        return f"has pad_token_id {show(padding)}", f"from 0 to {most - 1:,}"
    return None


def _is_number(value: Any, low: float, high: float) -> bool:
    """Return whether a value is null or a number in a range."""
    return value is None or (type(value) in (int, float) and low <= value <= high)


def _misfit(described: dict[str, Any], weights: dict[str, Weight] | None, folder: Path) -> str:
    """Describe how weights differ from the sizes in config.json.

    The text is empty if they do not differ. For pickles only the file size is checked: it cannot be
    smaller than the weights.
    """
    if weights is None:
        least = weight_files.NARROWEST * _fewest(described)
        size = weight_files.size_of(weight_files.files_of(weight_files.find(folder)))
        if size < least:
            return (
                f"whose weights have {size:,} bytes, but its config.json needs at least {least:,}"
            )
        return ""
    kind = described["model_type"]
    layers = set()
    for name, (dtype, shape) in weights.items():
        part = re.sub(rf"^{BASES[kind]}\.", "", name)
        if layer := re.match(LAYER, part):
            layers.add(int(layer[1]))
        keys = next((keys for pattern, keys in STORED.items() if re.fullmatch(pattern, part)), ())
        sizes = [size_in(described, key) for key in keys]
        if keys and dtype not in weight_files.FLOATS:
            return (
                f"which has {name} of the type {dtype} (allowed: {', '.join(weight_files.FLOATS)})"
            )
        if keys and (
            len(shape) != 2
            or any(size not in (None, own) for size, own in zip(sizes, shape, strict=True))
        ):
            expected = [size or own for size, own in zip(sizes, shape, strict=False)]
            return f"whose {name} has the size {[*shape]}, but its config.json gives {expected}"
    count = size_in(described, "num_hidden_layers")
    if count is not None and layers != set(range(count)):
        return f"whose weights have {len(layers)} layers, but its config.json gives {count}"
    return ""


def _fewest(described: dict[str, Any]) -> int:
    """Return the minimum number of weights: word embeddings, and six large matrices per layer."""
    layers, width, inner = (
        size_in(described, key) or 0
        for key in ("num_hidden_layers", "hidden_size", "intermediate_size")
    )
    words = (size_in(described, "vocab_size") or 0) * (size_in(described, "embedding_size") or 0)
    return words + layers * (4 * width * width + 2 * width * inner)


def size_in(described: dict[str, Any], key: str) -> int | None:
    """Return a size in a config.json by BERT's key; None if it is missing and a default applies."""
    if key == "embedding_size" and described.get("model_type") != "electra":
        key = "hidden_size"
    value = described.get(key, described.get(DISTILBERT.get(key, key)))
    return value if type(value) is int else None


def check_seq2seq(model: str, keys: Keys) -> None:
    """Refuse a model, at `keys`, that is no sequence-to-sequence model, or of two vocabularies."""
    folder = _Folder.of(model, keys, "transformers format, of a sequence-to-sequence model like T5")
    if folder is None:
        return
    folder.need("config.json", "config.json")
    described = folder.json("config.json", dict)
    if described.get("is_encoder_decoder") is not True:
        kind = described.get("model_type")
        raise folder.wrong(f"whose config.json describes no encoder with a decoder ({show(kind)})")
    key = "vocab_size"
    words = described.get(key)
    if described.get("model_type") == COMPOSED:
        key = "decoder.vocab_size"
        decoder = described.get("decoder")
        words = decoder.get("vocab_size") if isinstance(decoder, dict) else None
    if type(words) is not int or not 0 < words <= SIZES["vocab_size"]:
        raise folder.wrong(
            f"whose config.json has {key} {show(words)}",
            f"allowed: from 1 to {SIZES['vocab_size']:,}",
        )
    weights = folder.weights(Path(model)) or {}
    for name in SHARED:
        if name in weights and weights[name].shape[:1] != (words,):
            raise folder.wrong(
                f"whose {name} has the size {[*weights[name].shape]}, but its config.json has a "
                f"vocab_size of {words:,}",
                "allowed: a model whose config.json describes its weights",
            )
    folder.need(" or ".join(TOKENIZERS), *WRITERS_TOKENIZERS, more=", with its tokenizer")
    if (Path(model) / TOKENIZERS[0]).is_file():
        what = f"{dotted(keys)} is {show(model)}, whose tokenizer"
        try:
            check_ids(folder.json(TOKENIZERS[0], dict), what, words)
        except InputError as error:
            raise InputError(str(error), keys=keys) from None


def check_retriever(model: str, keys: Keys) -> None:
    """Refuse a third-party retriever, at `keys`, that sentence-transformers cannot load.

    Its weights are in its folder, or in the folders of its modules.
    """
    folder = _Folder.of(model, keys, "the format of sentence-transformers or transformers")
    if folder is None:
        return
    folder.need("modules.json or config.json", "modules.json", "config.json")
    composed = (Path(model) / "modules.json").is_file()
    if composed:
        modules = folder.json("modules.json", list)
        if not all(
            isinstance(module, dict) and isinstance(module.get("path", ""), str)
            for module in modules
        ):
            raise folder.wrong(
                "whose modules.json contains something other than modules with a path each"
            )
    if os.path.lexists(Path(model) / "config.json"):
        described = folder.json("config.json", dict)
        if not composed and not isinstance(described.get("model_type"), str):
            raise folder.wrong("whose config.json has no model_type")
    inside = ((Path(place), {*folders, *files}) for place, folders, files in os.walk(model))
    places = [place for place, names in inside if not names.isdisjoint(weight_files.NAMES)]
    for place in places or [Path(model)]:
        folder.weights(place)


def has_lm_head(model: str) -> bool:
    """Return whether a model has a language-model head; True for pickles and names at the hub."""
    path = weight_files.find(Path(model))
    weights = weight_files.read(path) if path else None
    return weights is None or any(name.startswith(LM_HEADS) for name in weights)


def is_sparse_encoder(model: str) -> bool:
    """Return whether a folder is a `SparseEncoder` of sentence-transformers."""
    return _described(model, "config_sentence_transformers.json").get("model_type") == SPARSE


def is_multi_encoder(model: str) -> bool:
    """Return whether a model has a vector per word-piece; True for names at the hub."""
    if not Path(model).is_dir():
        return True
    described = _described(model, "config_sentence_transformers.json")
    stanford = STANFORD in (_described(model).get("architectures") or ())
    return described.get("model_type") in MULTI or stanford


def query_length(model: str) -> int | None:
    """Return the length to which a multi-vector model fills its queries; None if not recorded."""
    described = _described(model, "config_sentence_transformers.json")
    inner = _described(model, "sentence_bert_config.json").get("query_expansion")
    if isinstance(inner, dict):
        described = {"query_length": inner.get("length")}
    length = described.get("query_length")
    if length is None:
        length = _described(model, "artifact.metadata").get("query_maxlen")
    filled = described.get("do_query_expansion", True)
    return length if filled and type(length) is int else None


def divided(model: str) -> tuple[str, str]:
    """Split ``name@revision`` of a hub model; the revision defaults to "main", also for folders."""
    name, at, revision = model.partition("@")
    return (name, revision) if at and not Path(model).is_dir() else (model, "main")


def number(model: str, key: str) -> int | None:
    """Return a number from a model's config.json; None if missing, and for names at the hub."""
    return size_in(_described(model), key)


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
        path = Path(model) / name
        weight_files.check_file(path)
        described = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return described if isinstance(described, dict) else {}


def check_plain(file: Path | str, keys: Keys) -> None:
    """Refuse a file name with a wildcard, such as `{shard}`.

    keys: the keys of the config that contain the file's path.
    """
    if part := WILDCARD.search(str(file)):
        words = f": the path {file} has {part[0]}, which Snakemake would replace; rename the file"
        raise refusal(keys, words)
