"""The multi-vector head: one vector per word-piece (ColBERT, Khattab and Zaharia 2020).

The score of a query and a passage is sum_i max_j q_i . d_j, over the query's and the passage's
vectors. A vector is a linear projection of a state, without bias.

match any (ColBERT): vectors have length 1. Punctuation marks of passages have no vectors. Queries
are filled with [MASK] up to a set length. Each [MASK] has a vector of its own; by default no other
word-piece attends to it.

match equal (COIL, Gao et al. 2021, and its code): a vector meets only vectors of the same
word-piece, and a product below 0 counts as 0, which is also the value of a word-piece that the
passage lacks. [SEP] has no vector. [CLS] has a projection of its own, of C numbers, and the product
of the [CLS] vectors is added to the sum. Projections have biases. Vectors keep their lengths. A
[CLS] vector is stored in rows of D numbers, the last filled with zeros; instead of a word-piece,
they have the numbers -k to -1.

    R  rows of a batch        D  dimensions        C  dimensions of [CLS]        B  texts
    k  rows of a [CLS] vector, C / D rounded up
"""

from __future__ import annotations

import string
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
from torch import Generator, Tensor, nn
from torch.nn import functional

from cdmae.models import metadata, transformer
from cdmae.models.linear import Layer, Layers
from cdmae.models.packed import Packed, Rows
from cdmae.models.ragged import BARE, HIDDEN, Ragged, interleaved, same, starts_of
from cdmae.tokens.vocabulary import read_backend

if TYPE_CHECKING:
    from cdmae.config.stages import Stage
    from cdmae.models.checkpoint import Model

NETWORK = "retriever"
PROJECTION = "1_Dense"  # the folder of the projection below a model's
PUNCTUATION = tuple(string.punctuation)


def width(network: nn.Module) -> int:
    """Return the number of dimensions D of a vector."""
    return network.projection.out_features


def vectors(
    network: nn.Module,
    packed: Packed,
    settings: Model | Stage,
    *,
    generator: Generator | None = None,
    memory: dict[str, Tensor] | None = None,
) -> Tensor:
    """Return the vectors of texts, text by text, [R, D]; a second pass computes them again."""
    del memory
    rows = packed.scored
    states = transformer.hidden_states(network, packed, last_rows=rows, generator=generator)
    states = states[: len(rows.cells)]
    if settings.match == "equal":
        projected = _with_cls(network, states, rows)
    else:
        projected = network.projection(states)
    # bf16 is for products, not for losses.
    wide = projected.to(torch.promote_types(projected.dtype, torch.float32))
    return wide if settings.match == "equal" else functional.normalize(wide, dim=-1)


def _with_cls(network: nn.Module, states: Tensor, rows: Rows) -> Tensor:
    """Project the states of texts, of which the first is [CLS]'s: the rows of `scored`, [R, D]."""
    count = rows_of_cls(network)
    first = rows.starts[:-1].long()
    others = torch.ones(len(states), dtype=torch.bool, device=states.device)
    others[first] = False
    cls = network.of_cls(states[first])  # [B, C]
    cls = functional.pad(cls, (0, count * width(network) - cls.shape[1])).view(-1, width(network))
    pieces = network.projection(states[others]).to(cls.dtype)
    text = torch.arange(len(first), device=states.device)
    lengths = rows.starts.diff().long()
    texts = torch.cat([text.repeat_interleave(count), text.repeat_interleave(lengths - 1)])
    return torch.cat([cls, pieces])[texts.argsort(stable=True)]


def rows_of_cls(network: nn.Module) -> int:
    """Return the number of rows k of a [CLS] vector, or 0 if [CLS] has no projection of its own."""
    of_cls = getattr(network, "of_cls", None)
    return -(-of_cls.out_features // width(network)) if of_cls else 0


# --- word-pieces ----------------------------------------------------------------------------------


def reading(described: dict[str, Any], tokenizer: Path | str) -> dict[str, Any]:
    """Return the fields of a `Model` that decide which word-pieces have vectors with match any.

    described: the keys of ``cdmae.json``. Punctuation marks that are not word-pieces are omitted.
    """
    filled = 0 if described["expansion"] == "none" else described["query_length"]
    marks = PUNCTUATION if described["skip_punctuation"] else ()
    backend = read_backend(tokenizer)
    found = (backend.token_to_id(mark) for mark in marks)
    return {"filled": filled, "skipped": tuple(index for index in found if index is not None)}


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
    flags = interleaved(Ragged(flags, read.starts), flags_of_masks).values
    return replace(interleaved(read, masks), flags=flags.astype(np.uint8))


def scored(read: Ragged, network: nn.Module) -> Ragged:
    """Return the word-piece of each row of `vectors`; the rows of a [CLS] vector have -k to -1."""
    pieces = read.keep(read.flags & BARE == 0)
    count = rows_of_cls(network)
    if not count:
        return pieces
    is_cls = np.zeros(len(pieces.values), bool)
    is_cls[pieces.starts[:-1]] = True
    return interleaved(same(len(pieces), *range(-count, 0)), pieces.keep(~is_cls))


# --- files ----------------------------------------------------------------------------------------


def layers(described: Mapping[str, Any]) -> Layers:
    """Return the projections."""
    if described["match"] == "any":
        return {"projection": Layer(PROJECTION, described["dimensions"], bias=False)}
    return {
        "projection": Layer(PROJECTION, described["dimensions"]),
        "of_cls": Layer("2_Dense", described["cls_dimensions"]),
    }


def write(folder: Path, model: Model, prompts: Mapping[str, str]) -> None:
    """Write the files by which other libraries read the folder.

    The layout is PyLate's, which sentence-transformers' `MultiVectorEncoder` (from version 6.2)
    reads. No library reads COIL's matching.

    Prompts are text and not prefixes: a prefix is one token, even where the tokenizer would divide
    it.
    """
    if model.match == "equal":
        return
    modules = {"": metadata.TRANSFORMER, PROJECTION: "pylate.models.Dense.Dense"}
    options = {
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
    metadata.write_layout(folder, modules, {}, model.lengths["passage_length"], options)
