"""Tiny random encoders of every architecture, with biases and norms that differ from 0 and 1."""

import torch
import transformers

from cdmae.config.pretrained import FAMILIES
from cdmae.models import architectures

SIZES = {"vocab_size": 40, "max_position_embeddings": 48, "initializer_range": 0.3}
LAYERS = {
    "hidden_size": 24,
    "num_hidden_layers": 3,
    "num_attention_heads": 3,
    "intermediate_size": 40,
}
BEHIND = {"pad_token_id": 1, "max_position_embeddings": 50}
OWN = {
    "electra": {"embedding_size": 16},
    "roberta": {**BEHIND, "type_vocab_size": 1},
    "xlm-roberta": {**BEHIND, "type_vocab_size": 1},
    "mpnet": BEHIND,
    "distilbert": {"dim": 24, "n_layers": 3, "n_heads": 3, "hidden_dim": 40},
    "modernbert": {
        "pad_token_id": 0,
        "local_attention": 8,
        "global_attn_every_n_layers": 2,
        "cls_token_id": 2,
    },
}


def config(family, **changed):
    """A config of an architecture for a vocabulary of 40."""
    sizes = SIZES if family == "distilbert" else SIZES | LAYERS
    attended = "sdpa" if family == "modernbert" else "eager"  # whose mask overflows in float64
    values = sizes | OWN.get(family, {}) | {"attn_implementation": attended} | changed
    return transformers.AutoConfig.for_model(family, **values)


def model(family, kind="retriever", **changed):
    """A model of an architecture and of one of `architectures.KINDS`; an encoder has no pooler."""
    pooler = (
        {"add_pooling_layer": False}
        if kind == "retriever" and family in architectures.POOLED
        else {}
    )
    with torch.random.fork_rng():
        torch.manual_seed(7)
        automatic = getattr(transformers, architectures.KINDS[kind])
        made = automatic.from_config(config(family, **changed), **pooler).eval()
        with torch.no_grad():
            for weights in made.parameters():
                weights.add_(torch.randn(weights.shape) * 0.1)
    return made


def padded(sequences, pad=0, types=None):
    """What a model of transformers reads of sequences of ids: int64 [B, n] each; types: of their
    tokens.
    """
    lists = {
        "input_ids": (sequences, pad),
        "attention_mask": ([[1] * len(ids) for ids in sequences], 0),
    }
    lists |= {} if types is None else {"token_type_ids": (types, 0)}
    width = max(map(len, sequences))
    return {
        name: torch.tensor([[*values, *[fill] * (width - len(values))] for values in rows])
        for name, (rows, fill) in lists.items()
    }


ALL = FAMILIES
ROTARY = ("modernbert", "nomic_bert", "gte")  # transformers computes their angles in float32
