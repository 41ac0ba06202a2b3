"""Differences between encoder architectures: layers, their modules, heads, positions and dropout.

All modules are transformers' own; the ``model_type`` in config.json is one of
`cdmae.config.pretrained.FAMILIES`:

============  =====================================================================================
bert          word, position and type embeddings; a LayerNorm after each half of a layer; also
              MiniLM
electra       as BERT; embeddings may be narrower than the layers, and are then projected
roberta       as BERT, but position ids start after the padding id, and pairs have no types; also
              XLM-RoBERTa
distilbert    as BERT, also with its dropout after attention; without types and pooler
mpnet         as RoBERTa, with an attention bias for each distance between two tokens
modernbert    rotary attention instead of position embeddings; a LayerNorm before each half of a
              layer; most layers attend within a window
nomic_bert,   as BERT, with rotary attention instead of position embeddings, and a gate in each
gte           layer; GTE's dropout of the gated states is left out
============  =====================================================================================
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn import functional

if TYPE_CHECKING:
    from transformers import BertConfig, PretrainedConfig, PreTrainedModel

KINDS = {  # the class of transformers that reads each kind of network
    "encoder": "AutoModelForMaskedLM",
    "retriever": "AutoModel",
    "reranker": "AutoModelForSequenceClassification",
}
# families whose positions begin after pad_token_id; MPNet's first word-piece is 2 in any case
BEHIND_PADDING = ("roberta", "xlm-roberta", "mpnet")
POOLED = ("bert", *BEHIND_PADDING)  # architectures that have a pooler unless it is switched off


def layers(model: nn.Module) -> nn.ModuleList:
    """Return the layers of an encoder without a head."""
    if hasattr(model, "layers"):
        return model.layers
    if model.config.model_type == "distilbert":
        return model.transformer.layer
    return model.encoder.layer


def first_position(config: PretrainedConfig) -> int:
    """Return the position id of a text's first token."""
    if config.model_type not in BEHIND_PADDING:
        return 0
    if config.model_type == "mpnet":
        return 2
    return 1 + config.pad_token_id


def positions(config: PretrainedConfig) -> int:
    """Return the maximum input length of an encoder in tokens, special tokens included."""
    return config.max_position_embeddings - first_position(config)


def dropout(config: PretrainedConfig) -> float:
    """Return the dropout probability of hidden values."""
    names = {"distilbert": "dropout", "modernbert": "mlp_dropout"}
    return getattr(config, names.get(config.model_type, "hidden_dropout_prob"))


def bert_config(config: PretrainedConfig) -> BertConfig:
    """Return a BERT config with the sizes of an encoder, for building decoders."""
    if config.model_type == "bert":
        return config
    from transformers import BertConfig

    def value(*names: str, default: Any = None) -> Any:
        return next((getattr(config, name) for name in names if hasattr(config, name)), default)

    return BertConfig(
        vocab_size=config.vocab_size,
        hidden_size=config.hidden_size,
        num_hidden_layers=config.num_hidden_layers,
        num_attention_heads=config.num_attention_heads,
        intermediate_size=value("intermediate_size", "hidden_dim"),
        hidden_act=value("hidden_act", "activation", "hidden_activation"),
        max_position_embeddings=config.max_position_embeddings,
        initializer_range=config.initializer_range,
        layer_norm_eps=value("layer_norm_eps", "norm_eps", default=1e-12),
        hidden_dropout_prob=dropout(config),
        pad_token_id=config.pad_token_id,
    )


# --- layers ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Parts:
    """The modules of a post-LayerNorm layer."""

    query: nn.Module
    key: nn.Module
    value: nn.Module
    mix: nn.Module
    norm: nn.Module
    widen: Callable[[Tensor], Tensor]
    narrow: nn.Module
    last_norm: nn.Module


def parts(layer: nn.Module) -> Parts:
    """Return the modules of a layer of any architecture but ModernBERT."""
    if hasattr(layer, "self_attn"):  # NomicBERT, GTE
        own = layer.self_attn
        inner = layer.mlp
        return Parts(
            query=own.q_proj,
            key=own.k_proj,
            value=own.v_proj,
            mix=own.o_proj,
            norm=layer.post_attention_layernorm,
            widen=lambda states: inner.act_fn(inner.gate_proj(states)) * inner.up_proj(states),
            narrow=inner.down_proj,
            last_norm=layer.post_mlp_layernorm,
        )
    block = layer.attention
    if hasattr(layer, "ffn"):  # DistilBERT
        inner = layer.ffn
        return Parts(
            query=block.q_lin,
            key=block.k_lin,
            value=block.v_lin,
            mix=block.out_lin,
            norm=layer.sa_layer_norm,
            widen=lambda states: inner.activation(inner.lin1(states)),
            narrow=inner.lin2,
            last_norm=layer.output_layer_norm,
        )
    feedforward = {
        "widen": layer.intermediate,
        "narrow": layer.output.dense,
        "last_norm": layer.output.LayerNorm,
    }
    if hasattr(block, "attn"):  # MPNet
        own = block.attn
        return Parts(own.q, own.k, own.v, own.o, block.LayerNorm, **feedforward)
    own = block.self
    return Parts(
        own.query,
        own.key,
        own.value,
        block.output.dense,
        block.output.LayerNorm,
        **feedforward,
    )


# --- heads ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Head:
    """A language-model head, ``output(norm(activation(dense(states))))``: [M, D] -> [M, V]."""

    dense: nn.Linear
    activation: Callable[[Tensor], Tensor]
    norm: nn.LayerNorm
    output: nn.Linear

    def transform(self, states: Tensor) -> Tensor:
        """Return the transformed states, which the output matrix then turns into logits."""
        return self.norm(self.activation(self.dense(states)))

    def __call__(self, states: Tensor) -> Tensor:
        """Return the logits of the states."""
        return self.output(self.transform(states))


def head(model: PreTrainedModel) -> Head:
    """Return the head of a model for masked language modelling."""
    family = model.config.model_type
    if family in ("bert", "nomic_bert"):
        before = model.cls.predictions.transform
        norm = before.LayerNorm if family == "bert" else before.layer_norm
        output = model.cls.predictions.decoder
        return Head(before.dense, before.transform_act_fn, norm, output)
    if family == "electra":
        before = model.generator_predictions
        return Head(before.dense, before.activation, before.LayerNorm, model.generator_lm_head)
    if family == "distilbert":
        return Head(
            model.vocab_transform, model.activation, model.vocab_layer_norm, model.vocab_projector
        )
    if family == "modernbert":
        return Head(model.head.dense, model.head.act, model.head.norm, model.decoder)
    return Head(
        model.lm_head.dense, functional.gelu, model.lm_head.layer_norm, model.lm_head.decoder
    )


@dataclass(frozen=True)
class Classifier:
    """A head with one label: ``output(drop(norm(activation(dense(drop(vector))))))``.

    before, between: the dropout probabilities before the first and before the second matrix.
    """

    pooling: str
    before: float
    dense: nn.Linear
    activation: Callable[[Tensor], Tensor]
    norm: nn.Module
    between: float
    output: nn.Linear


def classifier(network: PreTrainedModel) -> Classifier:
    """Return the head of a reranker."""
    config = network.config
    last = network.classifier
    family = config.model_type
    share = getattr(config, "classifier_dropout", None)
    if share is None:
        share = dropout(config)
    if family in ("bert", "nomic_bert", "gte"):
        dense = network.base_model.pooler.dense
        return Classifier("cls", 0.0, dense, torch.tanh, nn.Identity(), share, last)
    if family == "distilbert":
        share = config.seq_classif_dropout
        dense = network.pre_classifier
        return Classifier("cls", 0.0, dense, functional.relu, nn.Identity(), share, last)
    if family == "modernbert":
        before = network.head
        pooling = config.classifier_pooling
        return Classifier(pooling, 0.0, before.dense, before.act, before.norm, share, last)
    activation = last.activation if family == "electra" else torch.tanh
    return Classifier("cls", share, last.dense, activation, nn.Identity(), share, last.out_proj)
