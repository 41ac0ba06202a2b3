"""A model in a folder of its own, with every file that other programs need to search with it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import torch
from scipy import sparse

from cdmae.collections.store import stream_passages
from cdmae.exporting import graph, vector_files
from cdmae.files import complete, read_json
from cdmae.log import say
from cdmae.models import checkpoint, metadata, networks, sequences
from cdmae.models.checkpoint import Model
from cdmae.report.notation import without_folders
from cdmae.retrieval import vectors as inference
from cdmae.tokens.tokenise import Tokeniser
from cdmae.tokens.vocabulary import Vocabulary
from cdmae.training import setup

EXAMPLES = 8  # passages on which onnxruntime must return the model's vectors
POOLING = "1_Pooling/config.json"


def export(
    output: Path,
    *,
    folder: str,
    kind: str,
    collection: str,
    vectors: str = "",
    threads: int = 1,
    onnx: bool = True,
) -> list[str]:
    """Write the folder `output` and return the paths of its files, relative to it.

    folder, kind: the model and its kind (retriever, reranker or encoder). collection: the folder of
    the passages. vectors: the folder of their vectors; empty without vectors.

    The output contains a copy of the model and, with `onnx`, ``onnx/model.onnx`` (see `graph`). For
    a retriever, it also contains the passages' texts and vectors (see `vector_files`).

    Raises `InputError` if the output of the ONNX file differs from the model's.
    """
    if onnx:
        graph.check_packages()
    with complete(output) as aside:
        hidden = shutil.ignore_patterns(".*")
        # without the permissions, so that the copies can be edited
        shutil.copytree(folder, aside, ignore=hidden, copy_function=shutil.copyfile)
        _move_card(aside / "README.md", Path(folder), output)
        model = _read(aside, kind)
        reason = graph.reason_against(model) if onnx else ""
        if reason:
            say(reason)
        elif onnx:
            _write_graph(model, aside, collection, threads)
        if vectors:
            vector_files.write(aside, collection, inference.read_shards(vectors))
        return sorted(str(path.relative_to(aside)) for path in aside.rglob("*") if path.is_file())


def _move_card(card: Path, before: Path, after: Path) -> None:
    """Name the output instead of the model's folder in a card's code; encoders have no card."""
    if card.exists():
        named = [without_folders(str(before)), after.name]
        old, new = (json.dumps(name, ensure_ascii=False) for name in named)
        card.write_text(card.read_text("utf-8").replace(old, new), "utf-8")


def _read(folder: Path, kind: str) -> Model:
    """Load a model; an encoder becomes a retriever with the pooling of its pre-training."""
    if kind != "encoder":
        return checkpoint.load(folder, kind)
    network, _ = networks.read(str(folder), folder, "encoder")
    longest = read_json(folder / "tokenizer_config.json")["model_max_length"]
    if not (folder / POOLING).exists():
        say("the encoder was not pre-trained and has no pooling; the export uses mean pooling")
        width = network.config.hidden_size
        metadata.write_modules(folder, width=width, pooling="mean", longest=longest)
    pooled = read_json(folder / POOLING)
    return Model(
        "retriever",
        network.base_model,
        Vocabulary.read(folder),
        {"query_length": longest, "passage_length": longest},
        "fp32",
        pooling="cls" if pooled["pooling_mode_cls_token"] else "mean",
    )


def _write_graph(model: Model, folder: Path, collection: str, threads: int) -> None:
    """Write the ONNX file; check it against the vectors that cdmae computes for some passages."""
    setup.set_up(threads)
    passages = next(stream_passages(collection, ["text"], rows=EXAMPLES))
    texts = passages["text"].to_pylist()
    ours = None
    if model.kind == "retriever":
        tokens = sequences.tokenised(texts, Tokeniser(folder))
        read = sequences.texts(model, "passage", tokens, np.arange(len(texts)))
        encoded = inference.encode(model, read, torch.device("cpu"))
        ours = encoded.toarray() if sparse.issparse(encoded) else encoded
    graph.write(model, folder, texts, ours)
