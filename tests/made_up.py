"""Packages, texts, models and runs that are made up."""

import json
import math
import random
import struct
from pathlib import Path


def make_package(folder, monkeypatch, sources, name="tree"):
    """A package of the given files, importable by name but never to be imported."""
    for file, source in sources.items():
        path = folder / name / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source)
    monkeypatch.syspath_prepend(str(folder))
    return name


def make_model(folder, **described):
    """A folder with the files of a BERT in transformers format, whose weights are one number for a
    layer; its path.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps({"model_type": "bert", **described}))
    layers = [
        f"bert.encoder.layer.{layer}.x" for layer in range(described.get("num_hidden_layers", 1))
    ]
    make_weights(folder / "model.safetensors", dict.fromkeys(layers, (1,)))
    parts = {
        "model": "WordPiece",
        "pre_tokenizer": "BertPreTokenizer",
        "post_processor": "BertProcessing",
    }
    (folder / "tokenizer.json").write_text(
        json.dumps({name: {"type": kind} for name, kind in parts.items()})
    )
    return str(folder)


def make_weights(path, shapes):
    """Write a file of safetensors with zeros."""
    header, end = {}, 0
    for name, shape in shapes.items():
        begin, end = end, end + math.prod(shape) * 4
        header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [begin, end]}
    text = json.dumps(header).encode()
    Path(path).write_bytes(struct.pack("<Q", len(text)) + text + bytes(end))


def run_of(*ranked):
    """A run of passages per query, best first; a score is the number of passages behind, and the
    passage itself.
    """
    import numpy as np

    from cdmae.runs import Run

    scores = [np.arange(len(passages), 0, -1, dtype=np.float32) for passages in ranked]
    return Run.of([np.array(passages, np.int32) for passages in ranked], scores)


def sentences(seed, words=40):
    """Made-up words."""
    rng = random.Random(seed)
    return ["".join(rng.choices("abcde", k=5)) for _ in range(words)]


def changed(words, number, seed):
    """The words with the last `number` of them replaced."""
    return words[: len(words) - number] + sentences(f"new {seed}", number)


def text(seed):
    """Made-up words as a text."""
    return " ".join(sentences(seed))
