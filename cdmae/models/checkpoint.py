"""Models on disk, in folders that transformers and sentence-transformers load without changes.

==============  ===================================================================================
encoder         an encoder of `cdmae.models.architectures` with its LM head. If it was pre-trained,
                it is also a sentence-transformers model, with the pooling of its training
retriever       a sentence-transformers model ([CLS] or mean pooling; dot product or cosine). Its
                top level also loads with ``transformers.AutoModel``; pool ``last_hidden_state``
                yourself: ``[:, 0]`` or the mean over tokens. With a sparse head it is a
                ``SparseEncoder``, and loads with ``transformers.AutoModelForMaskedLM``. With a
                multi-vector head it has PyLate's layout, which ``MultiVectorEncoder`` loads. With a
                unified head it is the ``SparseEncoder`` of its sparse head; the model card has the
                lines that load its dense head
reranker        a sentence-transformers ``CrossEncoder`` with one label and the identity as
                activation, also a ``transformers.AutoModelForSequenceClassification``; its scores
                are raw logits
==============  ===================================================================================

A retriever and a reranker also have ``cdmae.json`` (kind, lengths, pooling), the tokenizer,
``about.json`` and ``steps.tsv`` (the training curve).
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from cdmae.config.checks import check_lengths
from cdmae.errors import InputError
from cdmae.fields import pick
from cdmae.files import read_json, write_json
from cdmae.formats import listed
from cdmae.log import say
from cdmae.models import architectures, heads, linear, metadata, networks, weights
from cdmae.models.heads import multi, table
from cdmae.models.sequences import Prompt
from cdmae.tokens.vocabulary import Vocabulary

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from cdmae.config.schema import Start

LENGTHS = {"retriever": ("query_length", "passage_length"), "reranker": ("max_length",)}
# Names of a retriever's prompts in sentence-transformers.
PROMPTS = {"query_prompt": "query", "passage_prompt": "document"}
IDENTITY = "torch.nn.modules.linear.Identity"


@dataclass(frozen=True, kw_only=True)
class Head:
    """The settings of a retriever's head, with the keys of ``cdmae.json``.

    head: the name of a module in `cdmae.models.heads`. pooling: of dense retrievers, `cls` or
    `mean`. similarity: how vectors are compared, `dot` or `cosine`. pieces, target, query_weights:
    settings of `cdmae.config.stages.Sparse`. dimensions to skip_punctuation: settings of
    `cdmae.config.stages.Multi`. dense_weight: of unified retrievers, the factor of the dense head's
    scores in the sum.
    """

    head: str = "dense"
    pooling: str = "cls"
    similarity: str = "dot"
    pieces: str = "all"
    target: str = "ranking"
    query_weights: str = "network"
    dimensions: int = 0
    cls_dimensions: int = 0
    match: str = "any"
    expansion: str = "none"
    skip_punctuation: bool = False
    dense_weight: float = 1.0


DEFAULTS = vars(Head())


@dataclass(frozen=True)
class Model(Head):
    """A retriever or a reranker with its tokenizer's vocabulary.

    network: the encoder without a pooler, or the encoder with a one-label head. lengths: the
    maximum input lengths in word-pieces, special tokens included. A retriever has `query_length`
    and `passage_length`, a reranker has `max_length`. precision: the training precision (see also
    `training.scoring_precision`). prompts: of retrievers, the texts before queries and passages,
    query_prompt and passage_prompt. table: the weights of queries that come from a table, float32
    [V]. filled: of multi-vector retrievers, the length to which [MASK] fills queries, 0 for none.
    skipped: the ids of punctuation marks without vectors.
    """

    kind: str
    network: PreTrainedModel
    vocabulary: Vocabulary
    lengths: dict[str, int]
    precision: str
    prompts: Mapping[str, Prompt] = field(default_factory=dict)
    table: np.ndarray | None = None
    filled: int = 0
    skipped: tuple[int, ...] = ()


# --- models before training -----------------------------------------------------------------------


def start_encoder(start: Start, tokenizer: Path | str, seed: int) -> PreTrainedModel:
    """Make the model from which pre-training begins: float32, on the CPU.

    Without a checkpoint all weights are new. If the checkpoint has no LM head, only the head is
    new. New weights depend on `seed` alone.
    """
    vocabulary = Vocabulary.read(tokenizer)
    if not start.checkpoint:
        return _random_encoder(start, vocabulary, seed)
    name = start.checkpoint
    model, new_keys = networks.read(
        f"the checkpoint {name}",
        os.path.expanduser(name),
        "encoder",
        new_head=True,
        seed=seed,
    )
    if new_keys:
        say(f"{name} has no LM head; new, random weights: {listed(new_keys, most=3)}")
        # even if the config disables tying
        model.config.tie_word_embeddings = True
        model.tie_weights()
    if model.config.vocab_size < vocabulary.pieces:
        raise InputError(
            f"{name} has a vocabulary of {model.config.vocab_size:,} word-pieces, but its "
            f"tokenizer in {tokenizer} has {vocabulary.pieces:,}; they must match"
        )
    return model


def _random_encoder(start: Start, vocabulary: Vocabulary, seed: int) -> PreTrainedModel:
    """Make a BERT of the given sizes with new weights."""
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


def start_model(encoder: Path | str, kind: str, *, seed: int = 0, **described: Any) -> Model:
    """Make a retriever or a reranker before fine-tuning, with the encoder's weights and a new head.

    The head's weights are drawn with `seed`. described: the other keys of ``cdmae.json``, which are
    fields of `Model`.
    """
    described = DEFAULTS | described
    model = _load(encoder, kind, described, new_head=kind == "reranker", seed=seed)
    linear.start_layers(model.network, heads.layers(described), seed)
    network = model.network
    if kind == "reranker" and network.config.model_type == "bert":
        draws = torch.Generator().manual_seed(seed)
        for part in (network.bert.pooler, network.classifier):
            weights.draw(part, network.config.initializer_range, draws)
    return model


# --- trained models -------------------------------------------------------------------------------


def save(folder: Path, model: Model, tokenizer: Path | str, about: dict[str, Any]) -> None:
    """Write a trained model into an existing folder, with the tokenizer from another folder."""
    network = model.network
    settings = vars(model)
    described = {"kind": model.kind, **model.lengths, "precision": model.precision}
    layers = {}
    if model.kind == "retriever":
        head = heads.described_by(settings)
        layers = heads.layers(settings)
        linear.write_layers(network, layers, folder)
        prompts = {PROMPTS[key]: prompt.text for key, prompt in model.prompts.items()}
        head.write(folder, model, prompts)
        described |= pick(settings, DEFAULTS)
        described |= {key: prompt.text for key, prompt in model.prompts.items()}
    else:  # its scores are raw logits
        network.config.sentence_transformers = {"activation_fn": IDENTITY}
        network.config.sbert_ce_default_activation_function = IDENTITY  # before version 4
    networks.write(folder, network, (table.SCALES, *(f"{name}." for name in layers)))
    metadata.write_tokenizer(folder, tokenizer, longest=max(model.lengths.values()))
    if model.table is not None:
        table.write(folder, model)
    write_json(folder / "cdmae.json", described)
    write_json(folder / "about.json", about)


def load(folder: Path | str, kind: str, **described: Any) -> Model:
    """Read a trained retriever or reranker, in evaluation mode.

    described: values that replace those in ``cdmae.json``, for a model that is trained further.
    Raises `InputError` if the folder does not contain a model of this kind.
    """
    described = check(folder, kind) | described
    model = _load(folder, kind, described)
    linear.load_layers(model.network, heads.layers(described), folder)
    return model


def at(model: Model, length: int) -> Model:
    """Return the model with all inputs cut at `length` word-pieces; 0 keeps its own lengths."""
    positions = architectures.positions(model.network.config)
    check_lengths({"evaluation.lengths": length}, positions, "the positions of the model")
    return replace(model, lengths=dict.fromkeys(model.lengths, length)) if length else model


def check(folder: Path | str, kind: str) -> dict[str, Any]:
    """Return the contents of a trained model's ``cdmae.json``, with the defaults of its head.

    Raises `InputError` unless the folder contains a model of this kind.
    """
    path = Path(folder) / "cdmae.json"
    if not path.exists():
        raise InputError(
            f"{folder} contains no model that this program trained: it has no cdmae.json; train "
            "the model, or check the path"
        )
    described = read_json(path)
    if described["kind"] != kind:
        raise InputError(f"{folder} contains a {described['kind']}, not a {kind}")
    return DEFAULTS | described


def check_tokens(model: Model, word_starts: Any, name: str) -> None:
    """Raise `InputError` unless `word_starts` [V], the vocabulary of tokens, is the model's."""
    own = model.vocabulary.word_starts
    if len(own) != len(word_starts) or (own != word_starts).any():
        raise InputError(
            f"{name} was made with another tokenizer than the model: its vocabulary has "
            f"{len(word_starts):,} word-pieces, the model's has {len(own):,}, and they differ; "
            "tokenise the texts with the model's tokenizer"
        )


def _load(
    folder: Path | str,
    kind: str,
    described: dict[str, Any],
    new_head: bool = False,
    seed: int = 0,
) -> Model:
    """Read the model of a retriever or reranker; described: the keys of ``cdmae.json``."""
    head = heads.described_by(described)
    network, _ = networks.read(
        str(folder),
        folder,
        head.NETWORK if kind == "retriever" else kind,
        new_head=new_head,
        seed=seed,
        remedy="; delete the folder and make it again",
    )
    lengths = pick(described, LENGTHS[kind])
    check_lengths(lengths, architectures.positions(network.config), f"the positions of {folder}")
    settings = pick(described, DEFAULTS)
    if head is multi:
        settings |= multi.reading(described, folder)
    if settings["query_weights"] != "network":
        settings["table"] = table.read(folder)
    prompts = {key: Prompt.read(described[key], folder) for key in PROMPTS if described.get(key)}
    return Model(
        kind,
        network,
        Vocabulary.read(folder),
        lengths,
        described["precision"],
        **settings,
        prompts=prompts,
    )
