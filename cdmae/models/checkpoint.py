"""Models on disk, in folders that transformers and sentence-transformers load without changes.

==============  ===================================================================================
encoder         an encoder of `cdmae.models.architectures` with its LM head. If it was pre-trained,
                it is also a sentence-transformers model, with the pooling of its training
retriever       a sentence-transformers model ([CLS] or mean pooling, dot product). Its top level
                also loads with ``transformers.AutoModel``, whose ``last_hidden_state`` is pooled:
                ``[:, 0]`` or the mean over tokens. With a sparse head: a sentence-transformers
                ``SparseEncoder``, also a ``transformers.AutoModelForMaskedLM``
reranker        a sentence-transformers ``CrossEncoder`` with one label and the identity as
                activation, also a ``transformers.AutoModelForSequenceClassification``; its scores
                are raw logits
the last two    also ``cdmae.json`` (kind, lengths, pooling), the tokenizer, ``about.json`` and
                ``steps.tsv`` (the training curve)
==============  ===================================================================================

Other libraries load an incomplete checkpoint with a warning at most: an encoder with random layers
then trains without an error and scores some points lower. Here new weights are named in the log,
and a checkpoint without the encoder is refused.
"""

from __future__ import annotations

import os
import pickle
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from cdmae.config import pretrained, weight_files
from cdmae.config.pretrained import FAMILIES
from cdmae.errors import InputError, cause
from cdmae.fields import show
from cdmae.files import read_json, write_json
from cdmae.log import say
from cdmae.models import architectures, heads, weights
from cdmae.models.heads import sparse
from cdmae.tokens.vocabulary import Vocabulary, special_tokens

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from cdmae.config.schema import Start

LENGTHS = {"retriever": ("query_length", "passage_length"), "reranker": ("max_length",)}
COMPARED = {"dense": ("pooling", "similarity"), "sparse": ("head",)}  # by a retriever's head
IDENTITY = "torch.nn.modules.linear.Identity"
ALLOWED = {  # in cdmae.json; a dense retriever lacks the head, an older one all but the precision
    "head": ("dense", "sparse"),
    "precision": ("auto", "fp32", "bf16"),
    "pooling": ("cls", "mean"),
    "similarity": ("dot", "cosine"),
}
PICKLED = (
    "its pytorch_model.bin is damaged, or a pickle with Python code, which is not run; allowed: "
    "tensors alone, best as model.safetensors (made from a trusted pickle by "
    "safetensors.torch.save_file)"
)


@dataclass(frozen=True)
class Model:
    """A retriever or a reranker with its tokenizer's vocabulary.

    network: the encoder without a pooler, or the encoder with a head of one label. lengths: the
    word-pieces, special ones included, at which inputs are cut: query_length and passage_length of
    a retriever, max_length of a reranker. precision: the training precision (see also
    `training.scoring_precision`). head: of a retriever, a name in `cdmae.models.heads`; pooling: of
    a dense one, `cls` or `mean`; similarity: how vectors are compared, `dot` or `cosine`.
    """

    kind: str
    network: PreTrainedModel
    vocabulary: Vocabulary
    lengths: dict[str, int]
    precision: str
    head: str = "dense"
    pooling: str = "cls"
    similarity: str = "dot"


# --- models before training -----------------------------------------------------------------------


def start_encoder(start: Start, tokenizer: Path | str, seed: int) -> PreTrainedModel:
    """Make the model that pre-training begins with: float32, on the CPU.

    New weights depend on `seed` alone: a whole random model, or an LM head that is missing.
    """
    vocabulary = Vocabulary.read(tokenizer)
    if not start.checkpoint:
        from transformers import BertConfig

        config = BertConfig(
            vocab_size=vocabulary.size,
            hidden_size=start.hidden,
            num_hidden_layers=start.layers,
            num_attention_heads=start.heads,
            intermediate_size=start.feedforward,
            max_position_embeddings=start.positions,
            initializer_range=start.initializer,
            hidden_dropout_prob=start.dropout,
            attention_probs_dropout_prob=start.dropout,
            pad_token_id=vocabulary.pad_id,
        )
        return weights.language_model(config, torch.Generator().manual_seed(seed))
    name = start.checkpoint
    path = name.startswith((".", "/", "~")) or pretrained.divided(name)[0].count("/") > 1
    if path and not Path(name).expanduser().is_dir():
        raise InputError(
            f"the checkpoint {name} is not a folder; allowed: a folder in transformers format, or "
            "a name at the hub"
        )
    new = architectures.NEW_HEADS["encoder"]
    model, head = read(
        f"the checkpoint {name}", os.path.expanduser(name), "encoder", new=new, seed=seed
    )
    if head:
        say(f"{name} has no LM head: new and random are {_some(head)}")
    matrix = model.get_output_embeddings().weight
    parameters = model.named_parameters(remove_duplicate=False)
    # A config may deny that the output matrix is tied to the embeddings.
    if any(weight is matrix and key in head for key, weight in parameters):
        model.config.tie_word_embeddings = True
        model.tie_weights()
    if model.config.vocab_size < vocabulary.pieces:
        raise InputError(
            f"{name} knows {model.config.vocab_size:,} word-pieces and its tokenizer in "
            f"{tokenizer} makes {vocabulary.pieces:,}; they do not belong together"
        )
    return model


def start_model(encoder: Path | str, kind: str, *, seed: int = 0, **described: Any) -> Model:
    """Make a retriever or a reranker before fine-tuning, with the encoder's weights and a new head.

    The head is drawn with `seed`. described: the other keys of ``cdmae.json``, which are fields of
    `Model`.
    """
    model = _load(encoder, kind, described, new=architectures.NEW_HEADS.get(kind, ()), seed=seed)
    if kind == "reranker" and model.network.config.model_type == "bert":
        draws = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for part in (model.network.bert.pooler.dense, model.network.classifier):
                drawn = torch.randn(part.weight.shape, generator=draws)
                part.weight.copy_(drawn * model.network.config.initializer_range)
                part.bias.zero_()
    return model


# --- trained models -------------------------------------------------------------------------------


def save(folder: Path, model: Model, tokenizer: Path | str, about: dict[str, Any]) -> None:
    """Write a trained model into an existing folder, with the tokenizer of another folder."""
    network = model.network
    if model.kind == "retriever" and model.head == "sparse":
        sparse.write_modules(
            folder, width=sparse.width(network), longest=model.lengths["passage_length"]
        )
    elif model.kind == "retriever":
        write_modules(
            folder,
            width=network.config.hidden_size,
            pooling=model.pooling,
            similarity=model.similarity,
            longest=model.lengths["passage_length"],
        )
    else:
        network.config.sentence_transformers = {"activation_fn": IDENTITY}
        network.config.sbert_ce_default_activation_function = IDENTITY  # before version 4
    write(folder, network)
    write_tokenizer(folder, tokenizer, longest=max(model.lengths.values()))
    described = {"kind": model.kind, **model.lengths, "precision": model.precision}
    keys = COMPARED[model.head] if model.kind == "retriever" else ()
    compared = {key: getattr(model, key) for key in keys}
    write_json(folder / "cdmae.json", described | compared)
    write_json(folder / "about.json", about)


def load(folder: Path | str, kind: str) -> Model:
    """Read a trained model of a kind, in evaluation mode.

    Raises `InputError` if the folder does not contain a model of this kind.
    """
    return _load(folder, kind, check(folder, kind))


def at(model: Model, length: int) -> Model:
    """Return the model with all its inputs cut at `length`; at its own lengths where that is 0."""
    positions = architectures.positions(model.network.config)
    if length > positions:
        raise InputError(
            f"evaluation.lengths has {length}; allowed: up to {positions}, the positions of the "
            "model"
        )
    return replace(model, lengths=dict.fromkeys(model.lengths, length)) if length else model


def check(folder: Path | str, kind: str) -> dict[str, Any]:
    """Return the contents of a trained model's ``cdmae.json``.

    Raises `InputError` unless the folder contains a model of this kind.
    """
    path = Path(folder) / "cdmae.json"
    if not path.exists():
        raise InputError(
            f"{folder} holds no model trained here: it has no cdmae.json; train it, or check the "
            "path"
        )
    described = read_json(path)
    if not isinstance(described, dict):
        raise InputError(f"{path} holds no JSON object; delete the folder and train it again")
    if described.get("kind") != kind:
        raise InputError(f"{folder} holds a {described.get('kind')}; here it must be a {kind}")
    for key in (*LENGTHS[kind], "precision"):
        if key not in described:
            raise InputError(f"{path} lacks {key}; delete the folder and train it again")
    for key in LENGTHS[kind]:
        if type(described[key]) is not int or described[key] < 2:
            raise InputError(
                f"{path} says {key} {show(described[key])}; allowed: a whole number from 2"
            )
    for key, values in ALLOWED.items():
        if key in described and described[key] not in values:
            raise InputError(
                f"{path} says {key} {show(described[key])}; allowed: {', '.join(values)}"
            )
    return described


def check_tokens(model: Model, word_starts: Any, name: str) -> None:
    """Raise `InputError` unless tokens, by their `word_starts` [V], use the model's vocabulary."""
    own = model.vocabulary.word_starts
    if len(own) != len(word_starts) or (own != word_starts).any():
        raise InputError(
            f"{name} has the word-pieces of a vocabulary of {len(word_starts)}, the model's "
            f"vocabulary has {len(own)}: another tokenizer made them; tokenise with the model's"
        )


def _load(
    folder: Path | str,
    kind: str,
    described: dict[str, Any],
    new: tuple[str, ...] = (),
    seed: int = 0,
) -> Model:
    """Read the model of a retriever or reranker; described: the keys of ``cdmae.json``."""
    head = described.get("head", "dense")
    network, _ = read(
        str(folder),
        folder,
        heads.of(head).NETWORK if kind == "retriever" else kind,
        new=new,
        seed=seed,
        remedy="; delete the folder and make it again",
    )
    lengths = {key: described[key] for key in LENGTHS[kind]}
    positions = architectures.positions(network.config)
    key = max(lengths, key=lengths.__getitem__)
    if lengths[key] > positions:
        raise InputError(
            f"{key} is {lengths[key]}; allowed: up to {positions}, the positions that {folder} has"
        )
    # Retrievers of old versions lack these keys.
    compared = {key: described[key] for key in COMPARED[head] if key in described}
    return Model(
        kind, network, Vocabulary.read(folder), lengths, described["precision"], **compared
    )


# --- any network ----------------------------------------------------------------------------------


def read(
    what: str,
    place: Path | str,
    kind: str,
    *,
    new: tuple[str, ...] = (),
    seed: int = 0,
    remedy: str = "",
) -> tuple[PreTrainedModel, list[str]]:
    """Read a network from a folder or the hub (``name@revision``): float32, evaluation mode.

    kind: of `cdmae.models.architectures.KINDS`. new: beginnings of the names of weights that may be
    missing; they are then drawn with `seed`, and their names are the second result. Raises
    `InputError` for a missing or damaged file, another type, weights of other sizes or layers than
    config.json says, NaN or infinity among them, and other missing weights; the message begins with
    `what` and ends with the `remedy`.
    """
    import transformers

    name, revision = pretrained.divided(str(place))
    if path := weight_files.find(Path(name)):
        try:
            weight_files.read(path)
        except weight_files.Damaged as error:
            raise InputError(f"{what} cannot be read: its {error}{remedy}") from None
    family = None
    try:
        with _quiet(), weights.seeded(seed):
            described, _ = transformers.PreTrainedConfig.get_config_dict(name, revision=revision)
            family = described.get("model_type")
            if not family:  # transformers infers it from the name of an old folder
                config = transformers.AutoConfig.from_pretrained(
                    name, revision=revision, trust_remote_code=False
                )
                family = config.model_type
            if isinstance(family, str) and family in FAMILIES:
                if words := pretrained.contradiction({**described, "model_type": family}):
                    raise InputError(f"its config.json {words[0]}; allowed: {words[1]}")
                model, keys = getattr(
                    transformers, FAMILIES[family] + architectures.KINDS[kind]
                ).from_pretrained(
                    name,
                    revision=revision,
                    output_loading_info=True,
                    ignore_mismatched_sizes=True,  # reported below instead of in a table
                    **(
                        {"add_pooling_layer": False}
                        if kind == "retriever" and family in architectures.POOLED
                        else {}
                    ),
                    **({"num_labels": 1} if kind == "reranker" else {}),
                )
    except (EOFError, pickle.UnpicklingError):  # torch's own message misleads
        raise InputError(f"{what} cannot be read: {PICKLED}{remedy}") from None
    except Exception as error:  # transformers raises anything for third-party files
        raise InputError(f"{what} cannot be read: {cause(error)}{remedy}") from None
    if not isinstance(family, str) or family not in FAMILIES:
        raise InputError(f"{what} is of the type {family!r}; allowed: {', '.join(FAMILIES)}")
    if keys["mismatched_keys"]:
        key, stored, expected = min(keys["mismatched_keys"])
        raise InputError(
            f"{what} has {key} of the size {list(stored)}, and its config.json says "
            f"{list(expected)}; they do not belong together{remedy}"
        )
    missing = sorted(keys["missing_keys"])
    if lacking := [key for key in missing if not key.startswith(new)]:
        raise InputError(
            f"{what} lacks {_some(lacking)} of the model that its config.json describes{remedy}"
        )
    if surplus := sorted(
        key for key in keys["unexpected_keys"] if re.search(r"\blayers?\.\d+\.", key)
    ):
        raise InputError(
            f"{what} has {_some(surplus)}, which its config.json does not describe{remedy}"
        )
    model = model.float().eval()
    for name, weight in model.named_parameters():
        if not torch.isfinite(weight).all():
            raise InputError(
                f"{what} has NaN or infinity in {name}: it is damaged, or its training "
                f"diverged{remedy}"
            )
    model.name_or_path = str(place)  # with the revision
    return model, missing


def commits(**models: Path | str) -> dict[str, str]:
    """Return the commits of models on the hub, by the given names, without models that have none.

    The hub's cache knows the commit of a model that was read. An encoder that was made here records
    the commit of its checkpoint.
    """
    found = {what: _commit(model, what) for what, model in models.items() if model}
    return {what: commit for what, commit in found.items() if commit}


def _commit(model: Path | str, what: str) -> str | None:
    from huggingface_hub import try_to_load_from_cache

    if not Path(model).is_dir():
        name, revision = pretrained.divided(str(model))
        file = try_to_load_from_cache(name, "config.json", revision=revision)
        return Path(file).parent.name if isinstance(file, str) else None
    try:
        recorded = read_json(Path(model) / "about.json")["commits"][what]
    except (InputError, OSError, LookupError, TypeError):  # a third-party file of this name
        return None
    return recorded if isinstance(recorded, str) else None


def write(folder: Path, network: PreTrainedModel) -> None:
    """Write config and weights so that transformers loads them without a warning.

    For most types, ``AutoModel`` expects a pooler. No retriever has one, so zeros are written.
    """
    from safetensors import SafetensorError

    stored = network.state_dict()
    if getattr(network, "pooler", network) is None:
        width = network.config.hidden_size
        stored |= {
            "pooler.dense.weight": torch.zeros(width, width),
            "pooler.dense.bias": torch.zeros(width),
        }
    try:
        with _quiet():  # under current names, even where the names that were read are old
            network.save_pretrained(folder, state_dict=stored, save_original_format=False)
    except SafetensorError as error:  # raise the system's error, such as a full disk, instead
        number = re.search(r"os error (\d+)", str(error))
        if number is None:
            raise
        raise OSError(int(number[1]), os.strerror(int(number[1]))) from error
    for file in folder.glob("*.safetensors"):  # safetensors creates them with mode 0600
        shutil.copymode(folder / "config.json", file)


def write_tokenizer(folder: Path, tokenizer: Path | str, longest: int) -> None:
    """Copy the tokenizer of a folder into a model's folder, with the maximum length `longest`.

    ``special_tokens_map.json`` repeats a part of ``tokenizer_config.json``: fastembed and other
    older readers expect that file.
    """
    tokenizer = Path(tokenizer)
    options = read_json(tokenizer / "tokenizer_config.json")
    shutil.copyfile(tokenizer / "tokenizer.json", folder / "tokenizer.json")
    write_json(folder / "tokenizer_config.json", {**options, "model_max_length": longest})
    write_json(folder / "special_tokens_map.json", special_tokens(tokenizer))


def write_modules(
    folder: Path,
    *,
    width: int,
    pooling: str,
    longest: int,
    similarity: str = "dot",
) -> None:
    """Write pooling, maximum length and similarity for sentence-transformers and other readers.

    All versions of sentence-transformers from 2.7 to 6 compute the same vectors from these files.
    Therefore modules have the names of version 2, and there is one length: version 6 has a key for
    the length of queries, which earlier versions refuse. Text Embeddings Inference requires all
    four pooling modes. vLLM reads the length only if ``do_lower_case`` is given.
    """
    parts = [("", "Transformer"), ("1_Pooling", "Pooling")]
    if similarity == "cosine":
        parts.append(("2_Normalize", "Normalize"))
    modules = [
        {
            "idx": index,
            "name": str(index),
            "path": path,
            "type": f"sentence_transformers.models.{name}",
        }
        for index, (path, name) in enumerate(parts)
    ]
    modes = {
        "pooling_mode_cls_token": pooling == "cls",
        "pooling_mode_mean_tokens": pooling == "mean",
        "pooling_mode_max_tokens": False,
        "pooling_mode_mean_sqrt_len_tokens": False,
    }
    for path, _ in parts[1:]:
        (folder / path).mkdir()
    write_json(folder / "modules.json", modules)
    write_json(folder / "1_Pooling" / "config.json", {"word_embedding_dimension": width, **modes})
    lengths = {"max_seq_length": longest, "do_lower_case": False}
    write_json(folder / "sentence_bert_config.json", lengths)
    write_json(folder / "config_sentence_transformers.json", {"similarity_fn_name": similarity})


def _some(keys: list[str]) -> str:
    """Name some keys, and count the others."""
    return ", ".join(keys[:3]) + (f" and {len(keys) - 3} more weights" if len(keys) > 3 else "")


@contextmanager
def _quiet() -> Iterator[None]:
    """Hide progress bars and tables of weights: `read` reports missing weights itself."""
    from transformers.utils import logging

    level, bar = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bar:
            logging.enable_progress_bar()
