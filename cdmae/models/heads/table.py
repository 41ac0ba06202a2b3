"""Query weights from a table: a sparse retriever that runs no network for a query.

The weight of a word-piece t of a query is its IDF over the P passages of the training collection,
P_t of which contain t:

    idf(t) = ln(1 + (P - P_t + 0.5) / (P_t + 0.5)),    q_t = idf(t) if t is in the query, else 0.

The score is sum_t q_t w_t, where w are the weights of the passage by the sparse head (SPLADE-doc,
Formal et al. 2021, arXiv 2109.10086; with IDF: Geng et al. 2024, arXiv 2411.04403, and `get_idf.py`
in their code). Special tokens have the weight 0.

With `query_weights: learned` the weight is idf(t) ReLU(1 + 50 s_t). s_t begins at 0 and is trained
with the network; under Adam, the factor 50 makes its learning rate 50 times the network's, as in
sentence-transformers' example (1e-3 and 2e-5).

    P  passages        Q  queries        V  word-pieces
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import torch
from safetensors.numpy import load_file, save_file
from scipy import sparse
from torch import Tensor, nn
from torch.nn import functional

from cdmae.files import write_json
from cdmae.models import metadata
from cdmae.models.heads import own
from cdmae.models.ragged import Ragged
from cdmae.tokens.corpus import Tokens
from cdmae.tokens.prompts import FRAME
from cdmae.tokens.vocabulary import Vocabulary

if TYPE_CHECKING:
    from cdmae.models.checkpoint import Model

TABLE = "query_0_SparseStaticEmbedding"  # the folder of the table below a model's
POOLING = "document_1_SpladePooling"
FILE = f"{TABLE}/model.safetensors"
BLOCK = 1 << 20  # passages that are counted at a time
MODULES = "sentence_transformers.sparse_encoder.models"
ROUTER = "sentence_transformers.models.Router"
SCALES = "query_scales"  # the network's attribute with s
PACE = 50


def idf(passages: Tokens, vocabulary: Vocabulary, width: int) -> np.ndarray:
    """Return the IDF of each word-piece, float32 [V]; width: the number V of the network."""
    containing = np.zeros(width, np.int64)
    for first in range(0, len(passages), BLOCK):
        part = passages.part(first, min(first + BLOCK, len(passages)))
        ids = vocabulary.of_model(part.ids.astype(np.int64))
        rows = np.repeat(np.arange(len(part)), np.diff(part.starts))
        pairs = np.unique(rows * width + ids)
        containing += np.bincount(pairs % width, minlength=width)
    found = np.log1p((len(passages) - containing + 0.5) / (containing + 0.5)).astype(np.float32)
    found[np.flatnonzero(vocabulary.special[: vocabulary.pieces])] = 0
    return found


def weigh(read: Ragged, table: np.ndarray) -> sparse.csr_array:
    """Return the weights of framed queries, float32 [Q, V]; a repeated word-piece counts once."""
    found = own.counts(read, len(table))
    found.data = table[found.indices]
    found.eliminate_zeros()
    return found


def start_learning(network: nn.Module, words: int) -> None:
    """Add s to a network, float32 [V]."""
    network.register_parameter(SCALES, nn.Parameter(torch.zeros(words)))


def learned(weights: Tensor, network: nn.Module) -> Tensor:
    """Scale weights from the initial table, [..., V], by what the network has learnt."""
    scales = getattr(network, SCALES)
    return weights.to(scales) * functional.relu(1 + PACE * scales)


def write(folder: Path, model: Model) -> None:
    """Write the table into a model's folder, as sentence-transformers' `SparseEncoder` reads it.

    The folder already has the model's tokenizer and the files of the sparse head.
    """
    room = model.lengths["query_length"] - FRAME  # the library adds no special tokens to a query
    (folder / TABLE).mkdir()
    metadata.write_tokenizer(folder / TABLE, folder, longest=room)
    is_learned = model.query_weights == "learned"
    write_json(folder / TABLE / "config.json", {"frozen": not is_learned})
    weights = model.table
    if is_learned:
        found = learned(torch.from_numpy(weights), model.network)
        weights = found.numpy(force=True)
    save_file({"weight": weights}, folder / FILE, {"format": "pt"})
    (folder / "1_SpladePooling").rename(folder / POOLING)
    router = {"idx": 0, "name": "0", "path": "", "type": ROUTER}
    write_json(folder / "modules.json", [router])
    types = {
        "": f"{MODULES}.MLMTransformer",
        POOLING: f"{MODULES}.SpladePooling",
        TABLE: f"{MODULES}.SparseStaticEmbedding",
    }
    structure = {"query": [TABLE], "document": ["", POOLING]}
    parameters = {"default_route": "document", "allow_empty_key": True}
    contents = {"types": types, "structure": structure, "parameters": parameters}
    write_json(folder / "router_config.json", contents)


def read(folder: Path | str) -> np.ndarray | None:
    """Return the table in a model's folder, float32 [V], if there is one."""
    path = Path(folder) / FILE
    return load_file(path)["weight"] if path.exists() else None
