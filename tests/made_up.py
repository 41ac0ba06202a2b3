"""Models and runs that are made up."""

import json
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file


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
    save_file({name: np.zeros(1, np.float32) for name in layers}, folder / "model.safetensors")
    parts = {
        "model": "WordPiece",
        "pre_tokenizer": "BertPreTokenizer",
        "post_processor": "BertProcessing",
    }
    (folder / "tokenizer.json").write_text(
        json.dumps({name: {"type": kind} for name, kind in parts.items()})
    )
    return str(folder)


def run_of(*ranked):
    """A run of passages per query, best first; a score is the number of passages behind, and the
    passage itself.
    """
    from cdmae.runs import Run

    scores = [np.arange(len(passages), 0, -1, dtype=np.float32) for passages in ranked]
    return Run.of([np.array(passages, np.int32) for passages in ranked], scores)
