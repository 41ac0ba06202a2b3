"""The multi-vector head: one vector per word-piece (ColBERT, Khattab and Zaharia 2020).

The score of a query and a passage is sum_i max_j q_i . d_j, over the query's and the passage's
vectors. A vector is a linear projection of a state, without bias.

match any (ColBERT): vectors have length 1. Punctuation marks of passages have no vectors. Queries
are filled with [MASK] up to a set length. Each [MASK] has a vector of its own; by default no other
word-piece attends to it.

match equal (COIL, Gao et al. 2021): a vector meets only vectors of the same word-piece, and a
word-piece that the passage lacks adds 0. [CLS] also counts as a word-piece, so its product is part
of the sum. [SEP] has no vector. Vectors keep their lengths.

    R  vectors of a batch        D  dimensions        E  width of the encoder
"""

from __future__ import annotations

import string
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Generator, Tensor, nn
from torch.nn import functional

from cdmae.errors import InputError
from cdmae.files import remedy, write_json
from cdmae.models import networks, transformer
from cdmae.models.packed import Packed
from cdmae.models.ragged import BARE, HIDDEN, Ragged, interleaved, starts_of
from cdmae.tokens.vocabulary import read_backend

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from cdmae.models.checkpoint import Model

NETWORK = "retriever"
PROJECTION = "1_Dense"  # the folder of the projection below a model's
WEIGHT = "linear.weight"
LEFT_OUT = ("projection.",)  # weights of the network that `networks.write` leaves out
PUNCTUATION = tuple(string.punctuation)


class Matched(Protocol):
    """The head's settings, from a stage or from a trained model."""

    match: str


def width(network: nn.Module) -> int:
    """Return the number of dimensions D of a vector."""
    return network.projection.out_features


def vectors(
    network: nn.Module,
    packed: Packed,
    settings: Matched,
    *,
    generator: Generator | None = None,
    memory: dict[str, Tensor] | None = None,
) -> Tensor:
    """Return the vectors of texts, text by text, [R, D]; a second pass computes them again."""
    del memory
    rows = packed.scored
    states = transformer.hidden_states(network, packed, last_rows=rows, generator=generator)
    projected = network.projection(states[: len(rows.layout.cells)])
    # bf16 is for products, not for losses.
    wide = projected.to(torch.promote_types(projected.dtype, torch.float32))
    return wide if settings.match == "equal" else functional.normalize(wide, dim=-1)


# --- word-pieces ----------------------------------------------------------------------------------


def reading(described: dict[str, Any], tokenizer: Path | str) -> dict[str, Any]:
    """Return the fields of a `Model` that decide which word-pieces have vectors.

    described: the keys of ``cdmae.json``. Punctuation marks that are not word-pieces are omitted.
    """
    paired = described["match"] == "equal"
    filled = 0 if paired or described["expansion"] == "none" else described["query_length"]
    skipped: list[int] = []
    if described["skip_punctuation"] and not paired:
        backend = read_backend(tokenizer)
        found = (backend.token_to_id(mark) for mark in PUNCTUATION)
        skipped = [index for index in found if index is not None]
    return {"filled": filled, "skipped": tuple(skipped)}


def flagged(read: Ragged, kind: Literal["query", "passage"], model: Model) -> Ragged:
    """Fill queries with [MASK]; flag word-pieces without a vector, and those hidden from others."""
    flags = np.zeros(len(read.values), np.uint8)
    if model.match == "equal":
        flags[read.starts[1:] - 1] = BARE  # [SEP]
        return replace(read, flags=flags)
    if kind == "passage":
        flags[np.isin(read.values, model.skipped)] = BARE
        return replace(read, flags=flags)
    missing = np.maximum(0, model.filled - read.lengths)
    starts = starts_of(missing)
    masks = Ragged(np.full(starts[-1], model.vocabulary.mask_id), starts)
    unseen = 0 if model.expansion == "attended" else HIDDEN
    flags_of_masks = Ragged(np.full(starts[-1], unseen), starts)
    filled = interleaved(read, masks)
    flags = interleaved(Ragged(flags, read.starts), flags_of_masks).values
    return replace(filled, flags=flags.astype(np.uint8))


def scored(read: Ragged) -> Ragged:
    """Return the word-pieces that have vectors."""
    return read.keep(read.flags & BARE == 0)


# --- the projection -------------------------------------------------------------------------------


def start(network: PreTrainedModel, dimensions: int, seed: int) -> None:
    """Add a projection to an encoder, with new weights from N(0, initializer_range), as in BERT."""
    drawn = torch.randn(
        dimensions, network.config.hidden_size, generator=torch.Generator().manual_seed(seed)
    )
    spread = getattr(network.config, "initializer_range", 0.02)
    _attach(network, drawn * spread)


def load(network: PreTrainedModel, folder: Path) -> None:
    """Add the projection that is stored in a trained model's folder to its encoder."""
    path = folder / PROJECTION / "model.safetensors"
    try:
        weight = load_file(path)[WEIGHT]
    except Exception as error:  # safetensors raises errors of its own
        raise InputError(f"{path} holds no projection ({error}); {remedy(path)}") from None
    if weight.ndim != 2 or weight.shape[1] != network.config.hidden_size:
        raise InputError(
            f"{path} has a projection of the shape {list(weight.shape)} for an encoder of width "
            f"{network.config.hidden_size}; {remedy(path)}"
        )
    _attach(network, weight)


def _attach(network: PreTrainedModel, weight: Tensor) -> None:
    projection = nn.Linear(weight.shape[1], weight.shape[0], bias=False)
    projection.weight = nn.Parameter(weight.float())
    network.projection = projection


# --- files ----------------------------------------------------------------------------------------


def write_modules(folder: Path, model: Model, prompts: Mapping[str, str]) -> None:
    """Write the projection, and the files by which other libraries read the folder.

    The layout is PyLate's, which sentence-transformers' `MultiVectorEncoder` (from version 6.2)
    reads. No library reads COIL's matching, so its folder has only the projection.
    """
    network = model.network
    dense = {
        "in_features": network.config.hidden_size,
        "out_features": width(network),
        "bias": False,
        "activation_function": "torch.nn.modules.linear.Identity",
    }
    (folder / PROJECTION).mkdir()
    write_json(folder / PROJECTION / "config.json", dense)
    weight = network.projection.weight.detach().cpu().contiguous()
    networks.write_tensors(folder / PROJECTION, {WEIGHT: weight})
    if model.match == "equal":
        return
    modules = [
        {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
        {"idx": 1, "name": "1", "path": PROJECTION, "type": "pylate.models.Dense.Dense"},
    ]
    write_json(folder / "modules.json", modules)
    longest = {"max_seq_length": model.lengths["passage_length"], "do_lower_case": False}
    write_json(folder / "sentence_bert_config.json", longest)
    write_json(folder / "config_sentence_transformers.json", _described(model, prompts))


def _described(model: Model, prompts: Mapping[str, str]) -> dict[str, Any]:
    """Return the settings of a model by PyLate's keys.

    Prompts are text and not prefixes: a prefix is one token, even where the tokenizer would divide
    it.
    """
    return {
        "model_type": "ColBERT",
        "query_prefix": "",
        "document_prefix": "",
        "query_length": model.lengths["query_length"],
        "document_length": model.lengths["passage_length"],
        "do_query_expansion": model.expansion != "none",
        "attend_to_expansion_tokens": model.expansion == "attended",
        "skiplist_words": list(PUNCTUATION) if model.skip_punctuation else [],
        "similarity_fn_name": "MaxSim",
        "prompts": {"query": "", "document": "", **prompts},
        "default_prompt_name": None,
    }
