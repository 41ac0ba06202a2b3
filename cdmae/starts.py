"""Where an encoder starts: random weights of a given size, or a checkpoint, whose keys are checked.

Peers load checkpoints with a warning at most: an encoder whose layers were never read trains as if nothing had happened
and ends some points lower. Here new weights are named, and a checkpoint without the encoder is refused.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from cdmae import huggingface
from cdmae.errors import InputError
from cdmae.progress import say
from cdmae.tokens import Vocabulary
from cdmae.training import seed_of

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from cdmae.config import Start


def load(start: Start, tokenizer: Path | str, seed: int) -> PreTrainedModel:
    """The model of a start: a BertForMaskedLM, or the encoder of an ELECTRA checkpoint, float32, on the CPU.

    New weights (all of a random start; an LM head that a checkpoint lacks) depend on `seed` alone.
    """
    vocabulary = Vocabulary.read(tokenizer)
    with huggingface.seeded(seed_of(seed, "start")), huggingface.quiet():
        model = _checkpoint(start.checkpoint) if start.checkpoint else _random(start, vocabulary)
    if model.config.vocab_size < vocabulary.size:
        raise InputError(
            f"{start.checkpoint} knows {model.config.vocab_size:,} word-pieces and its tokenizer in {tokenizer} "
            f"makes {vocabulary.size:,}; they do not belong together"
        )
    return model.float()


def _random(start: Start, vocabulary: Vocabulary) -> PreTrainedModel:
    """BERT of the given size; every matrix is drawn from N(0, initializer)."""
    from transformers import BertConfig, BertForMaskedLM

    return BertForMaskedLM(
        BertConfig(
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
    )


def _checkpoint(name: str) -> PreTrainedModel:
    """The encoder of a folder, or of a name at the Hugging Face hub, with its MLM head if it is a BERT."""
    from transformers import AutoConfig, AutoModel, BertForMaskedLM

    if (name.startswith((".", "/", "~")) or name.count("/") > 1) and not Path(name).expanduser().is_dir():
        raise InputError(
            f"the checkpoint {name} is not a folder; allowed: a folder in transformers format, or a name at the hub"
        )
    place = os.path.expanduser(name)
    kinds = {"bert": BertForMaskedLM, "electra": AutoModel}
    with _readable(name):
        kind = AutoConfig.from_pretrained(place).model_type
    if kind not in kinds:
        raise InputError(f"the checkpoint {name} is of the type {kind!r}; allowed: {', '.join(kinds)}")
    with _readable(name):
        model, keys = kinds[kind].from_pretrained(place, output_loading_info=True)
    _check(name, keys)
    return model


@contextmanager
def _readable(name: str) -> Iterator[None]:
    """Turn what transformers raises for a missing, damaged or unfitting file into one sentence."""
    from safetensors import SafetensorError

    try:
        yield
    except (OSError, RuntimeError, ValueError, SafetensorError) as error:
        raise InputError(f"the checkpoint {name} cannot be read: {' '.join(str(error).split())}") from None


def _check(name: str, keys: dict[str, set[str]]) -> None:
    """Say which weights are new; refuse where they belong to the encoder, or where the checkpoint has more layers."""
    head = sorted(key for key in keys["missing_keys"] if key.startswith("cls."))
    lacking = sorted(key for key in keys["missing_keys"] if key not in head and "pooler." not in key)
    surplus = sorted(key for key in keys["unexpected_keys"] if "encoder.layer." in key)
    if lacking:
        raise InputError(f"the checkpoint {name} lacks {_some(lacking)} of the encoder that its config.json describes")
    if surplus:
        raise InputError(f"the checkpoint {name} has {_some(surplus)}, which its config.json does not describe")
    if head:
        say(f"{name} has no LM head: new and random are {_some(head)}")


def _some(keys: list[str]) -> str:
    """Some keys by name and the number of the others."""
    return ", ".join(keys[:3]) + (f" and {len(keys) - 3} more weights" if len(keys) > 3 else "")
