"""One question, asked of a system of any kind."""

from __future__ import annotations

from typing import Any

from cdmae.models import checkpoint, sequences
from cdmae.retrieval import bm25, external, vectors
from cdmae.retrieval.fusion import Fusion
from cdmae.retrieval.reranking import reorder
from cdmae.retrieval.search import search
from cdmae.retrieval.vectors import Vectors
from cdmae.runs import Run
from cdmae.tokens.corpus import read_tokens
from cdmae.training import setup


def ask(system: dict[str, Any], text: str, depth: int, *, length: int = 0, threads: int = 1) -> Run:
    """Rank a system's best `depth` passages for a text, as its rule does for a split.

    system: its settings, with the folders that it reads: `index` of BM25, `model` and `vectors` of
    a retriever, `model` and `tokens` of a reranker; its parts (`reranks`, `of`) are mappings of the
    same form. length: texts are cut here; 0: at the model's own lengths.
    """
    if system["kind"] == "bm25":
        return bm25.search(system["index"], [text], depth, system["k1"], system["b"], threads)
    if system["kind"] in ("retriever", "external"):
        query = encode(system, [text], length, threads)
        shards = vectors.read_vectors(system["vectors"])
        return search(query, shards, depth, threads=threads, device=str(setup.device()))
    parts = [system["reranks"]] if system["kind"] == "reranker" else system["of"]
    runs = [ask(part, text, depth, length=length, threads=threads) for part in parts]
    if system["kind"] == "fusion":
        return Fusion(runs, system["method"], system["k"]).run(system["weights"], depth)
    reranker = checkpoint.at(checkpoint.load(system["model"], "reranker"), length)
    reranker.network.to(setup.device())
    query = sequences.queries([text], system["model"], threads)
    return reorder(reranker, query, read_tokens(system["tokens"]), runs[0], system["depth"])


def encode(system: dict[str, Any], texts: list[str], length: int = 0, threads: int = 1) -> Vectors:
    """Encode queries by a retriever, as its own rule does: float32 [Q, D]."""
    if system["kind"] == "external":
        cut = length or system["query_length"]
        return external.encode_queries(
            system["model"], texts, cut, system["query_prompt"], system["head"]
        )
    return vectors.encode_queries(system["model"], texts, threads, length)
