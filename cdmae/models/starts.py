"""Where an encoder starts: random weights of a given size, or a checkpoint, whose keys are checked.

Peers load checkpoints with a warning at most: an encoder whose layers were never read trains as if nothing had happened
and ends some points lower. Here new weights are named, and a checkpoint without the encoder is refused.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from cdmae.errors import InputError
from cdmae.log import say
from cdmae.models import bare, huggingface
from cdmae.tokens.vocabulary import Vocabulary
from cdmae.training.setup import generator, seed_of

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from cdmae.config.schema import Start


def load(start: Start, tokenizer: Path | str, seed: int) -> bare.MaskedLM | PreTrainedModel:
    """The model of a start: a BERT with its LM head, or the encoder of an ELECTRA checkpoint, float32, on the CPU.

    New weights (all of a random start; an LM head that a checkpoint lacks) depend on `seed` alone.
    """
    vocabulary = Vocabulary.read(tokenizer)
    if not start.checkpoint:
        return _random(start, vocabulary, generator(torch.device("cpu"), seed, "start"))
    with huggingface.seeded(seed_of(seed, "start")), huggingface.quiet():
        model = _checkpoint(start.checkpoint)
    if model.config.vocab_size < vocabulary.size:
        raise InputError(
            f"{start.checkpoint} knows {model.config.vocab_size:,} word-pieces and its tokenizer in {tokenizer} "
            f"makes {vocabulary.size:,}; they do not belong together"
        )
    return model.float()


def save(folder: Path, model: bare.MaskedLM | PreTrainedModel) -> None:
    """Write a model of a start, trained or not, in transformers format."""
    if isinstance(model, bare.MaskedLM):
        bare.write(folder, model)
    else:
        huggingface.save(model, folder)


def _random(start: Start, vocabulary: Vocabulary, draws: torch.Generator) -> bare.MaskedLM:
    """BERT of the given size; what is not given is as in BERT."""
    config = {
        "model_type": "bert",
        "vocab_size": vocabulary.size,
        "hidden_size": start.hidden,
        "num_hidden_layers": start.layers,
        "num_attention_heads": start.heads,
        "intermediate_size": start.feedforward,
        "max_position_embeddings": start.positions,
        "initializer_range": start.initializer,
        "hidden_dropout_prob": start.dropout,
        "attention_probs_dropout_prob": start.dropout,
        "pad_token_id": vocabulary.pad_id,
        "type_vocab_size": 2,
        "hidden_act": "gelu",
        "layer_norm_eps": 1e-12,
    }
    return bare.language_model(config, draws)


def _checkpoint(name: str) -> PreTrainedModel:
    """The encoder of a folder, or of a name at the Hugging Face hub, with its MLM head if it is a BERT."""
    from transformers import AutoModel, BertForMaskedLM

    if (name.startswith((".", "/", "~")) or name.count("/") > 1) and not Path(name).expanduser().is_dir():
        raise InputError(
            f"the checkpoint {name} is not a folder; allowed: a folder in transformers format, or a name at the hub"
        )
    kinds = {"bert": BertForMaskedLM, "electra": AutoModel}
    model, keys = huggingface.read(f"the checkpoint {name}", os.path.expanduser(name), kinds)
    _check(name, keys)
    return model


def _check(name: str, keys: dict[str, set[str]]) -> None:
    """Say which weights are new; refuse where they belong to the encoder, or where the checkpoint has more layers."""
    head = sorted(key for key in keys["missing_keys"] if key.startswith("cls."))
    lacking = sorted(key for key in keys["missing_keys"] if key not in head and "pooler." not in key)
    if lacking:
        raise InputError(
            f"the checkpoint {name} lacks {huggingface.some(lacking)} of the encoder that its config.json describes"
        )
    huggingface.check_layers(f"the checkpoint {name}", keys)
    if head:
        say(f"{name} has no LM head: new and random are {huggingface.some(head)}")
