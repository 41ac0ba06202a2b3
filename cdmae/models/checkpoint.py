"""Trained models on disk: folders that transformers and sentence-transformers load as they are.

==============  ========================================================================================================
retriever       a sentence-transformers model ([CLS] pooling, dot product); its top level also loads with
                ``transformers.AutoModel``, whose ``last_hidden_state[:, 0]`` are the vectors
reranker        a sentence-transformers ``CrossEncoder`` with one label and the identity as activation, which is
                ``transformers.AutoModelForSequenceClassification``; its scores are raw logits
both            ``cdmae.json`` (kind and lengths), tokenizer, ``about.json``, ``steps.tsv`` (the training curve)
==============  ========================================================================================================

BERT and ELECTRA encoders are known here.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import nn

from cdmae.errors import InputError
from cdmae.files import read_json, write_json
from cdmae.models import bare, huggingface
from cdmae.tokens.vocabulary import Vocabulary

if TYPE_CHECKING:
    from transformers import PreTrainedModel

LENGTHS = {"retriever": ("query_length", "passage_length"), "reranker": ("max_length",)}
FAMILIES = ("bert", "electra")  # model_type in config.json


@dataclass(frozen=True)
class Model:
    """A model and what it reads: a retriever or a reranker.

    network: the encoder (BertModel without pooler, ElectraModel), or the encoder with a head of one label.
    lengths: the word-pieces, special ones included, at which inputs are cut: query_length and passage_length of a
    retriever, max_length of a reranker. precision: that of its training (see also `training.scoring_precision`).
    """

    kind: str
    network: PreTrainedModel | bare.Bert | bare.Scorer
    vocabulary: Vocabulary
    lengths: dict[str, int]
    precision: str

    @property
    def encoder(self) -> nn.Module:
        """The transformer without a head."""
        return self.network.base_model


# --- a fresh start from a pre-trained encoder ------------------------------------------------------------------------


def start_retriever(encoder: Path | str, *, query_length: int, passage_length: int, precision: str) -> Model:
    """A retriever before fine-tuning: the encoder's own weights, nothing new."""
    lengths = {"query_length": query_length, "passage_length": passage_length}
    return _load(encoder, "retriever", lengths, precision)


def start_reranker(encoder: Path | str, *, max_length: int, precision: str, seed: int) -> Model:
    """A reranker before fine-tuning: the encoder's weights, and a head drawn with `seed`."""
    return _load(encoder, "reranker", {"max_length": max_length}, precision, seed)


# --- trained models --------------------------------------------------------------------------------------------------


def save(folder: Path, model: Model, tokenizer: Path | str, about: dict[str, Any]) -> None:
    """Write a trained model into `folder`, which exists; its tokenizer is that of the folder `tokenizer`."""
    network, longest = model.network, max(model.lengths.values())
    if model.kind == "retriever":
        _sentence_transformers_layout(folder, network.config.hidden_size, **model.lengths)
    else:
        network.config.sentence_transformers = {"activation_fn": "torch.nn.modules.linear.Identity"}
    if isinstance(network, (bare.Bert, bare.Scorer)):
        bare.write(folder, network)
    else:
        huggingface.save(network, folder)
    shutil.copyfile(Path(tokenizer) / "tokenizer.json", folder / "tokenizer.json")
    options = read_json(Path(tokenizer) / "tokenizer_config.json")
    write_json(folder / "tokenizer_config.json", {**options, "model_max_length": longest})
    write_json(folder / "cdmae.json", {"kind": model.kind, **model.lengths, "precision": model.precision})
    write_json(folder / "about.json", about)


def load(folder: Path | str, kind: str) -> Model:
    """Read a trained model of a kind, in evaluation mode; raises `InputError` where the folder holds none."""
    found = check(folder, kind)
    return _load(folder, kind, {key: found[key] for key in LENGTHS[kind]}, found["precision"])


def at(model: Model, length: int) -> Model:
    """The model with all its inputs cut at `length`; at its own lengths where that is 0."""
    positions = model.network.config.max_position_embeddings
    if length > positions:
        raise InputError(f"evaluation.lengths has {length}; allowed: up to {positions}, the positions of the model")
    return replace(model, lengths=dict.fromkeys(model.lengths, length)) if length else model


def check(folder: Path | str, kind: str) -> dict[str, Any]:
    """What ``cdmae.json`` of a trained model says; raises `InputError` unless the folder holds a model of this kind."""
    path = Path(folder) / "cdmae.json"
    if not path.exists():
        raise InputError(f"{folder} holds no model trained here: it has no cdmae.json; train it, or check the path")
    found = read_json(path)
    if found.get("kind") != kind:
        raise InputError(f"{folder} holds a {found.get('kind')}; here it must be a {kind}")
    for key in (*LENGTHS[kind], "precision"):
        if key not in found:
            raise InputError(f"{path} lacks {key}; delete the folder and train it again")
    return found


def check_tokens(model: Model, word_starts: Any, name: str) -> None:
    """Raise `InputError` unless tokens (their `word_starts` [V]) were made with the vocabulary of the model."""
    own = model.vocabulary.word_starts
    if len(own) != len(word_starts) or (own != word_starts).any():
        raise InputError(
            f"{name} has the word-pieces of a vocabulary of {len(word_starts)}, the model has one of {len(own)}: they "
            "were made with another tokenizer; tokenise with the model's"
        )


# --- how it is done --------------------------------------------------------------------------------------------------


def _load(folder: Path | str, kind: str, lengths: dict[str, int], precision: str, seed: int | None = None) -> Model:
    """The model in a folder, in evaluation mode; a reranker's head is new where there is a seed."""
    folder = Path(folder)
    config = _config(folder)
    longest, positions = max(lengths.values()), config["max_position_embeddings"]
    if longest > positions:
        key = max(lengths, key=lambda each: lengths[each])
        raise InputError(f"{key} is {longest}; allowed: up to {positions}, the positions that {folder} has")
    if config["model_type"] == "bert":
        drawn = None if seed is None else torch.Generator().manual_seed(seed)
        network = bare.read(folder, bare.Bert if kind == "retriever" else bare.Scorer, drawn)
    else:
        network = _electra(folder, kind, seed)
    return Model(kind, network, Vocabulary.read(folder), lengths, precision)


def _config(folder: Path) -> dict[str, Any]:
    path = folder / "config.json"
    if not path.exists():
        raise InputError(f"{folder} holds no model in transformers format: it has no config.json")
    config = read_json(path)
    if config.get("model_type") not in FAMILIES:
        raise InputError(f"{folder} holds a model of type {config.get('model_type')}; allowed: {', '.join(FAMILIES)}")
    return config


def _electra(folder: Path, kind: str, seed: int | None) -> PreTrainedModel:
    """An ELECTRA by transformers itself."""
    from transformers import ElectraForSequenceClassification, ElectraModel

    options = {"num_labels": 1} if kind == "reranker" else {}
    family = ElectraForSequenceClassification if kind == "reranker" else ElectraModel
    with huggingface.quiet(), huggingface.seeded(seed or 0):
        network, info = family.from_pretrained(folder, dtype=torch.float32, output_loading_info=True, **options)
    missing = [key for key in info["missing_keys"] if seed is None or not key.startswith("classifier.")]
    if missing or info["mismatched_keys"]:
        raise InputError(f"{folder} lacks the weights {sorted(missing)[:3]}; delete the folder and make it again")
    return network.eval()


def _sentence_transformers_layout(folder: Path, width: int, query_length: int, passage_length: int) -> None:
    """The files by which sentence-transformers (6 and later) knows the pooling, the lengths and the similarity."""
    parts = [("", "Transformer"), ("1_Pooling", "Pooling")]
    modules = [
        {"idx": place, "name": str(place), "path": path, "type": f"sentence_transformers.models.{name}"}
        for place, (path, name) in enumerate(parts)
    ]
    pooling = {"word_embedding_dimension": width, "pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}
    (folder / "1_Pooling").mkdir()
    write_json(folder / "modules.json", modules)
    write_json(folder / "1_Pooling" / "config.json", pooling)
    lengths = {"query_length": query_length, "document_length": passage_length}
    write_json(folder / "sentence_bert_config.json", {"max_seq_length": max(lengths.values()), **lengths})
    write_json(folder / "config_sentence_transformers.json", {"similarity_fn_name": "dot"})
