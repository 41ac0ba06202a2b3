"""Load models in several versions of sentence-transformers: ``python load_elsewhere.py JOB.json``.

Each version runs in its own process, forked from a process that has imported the libraries below,
because their import takes ten times as long as everything else. The vectors and scores of a version
are written to ``{output}/{version}.npz``.
"""

import json
import os
import sys
import traceback

import numpy as np
import requests  # noqa: F401
import sklearn.metrics  # noqa: F401
import torch
from transformers import (  # noqa: F401
    AutoModel,
    AutoTokenizer,
    BertForSequenceClassification,
    BertModel,
    BertTokenizer,
    Trainer,
)

# the first version that has a kind of model
SINCE = {"sparse": (5,), "multi": (6, 2)}


def too_old(version, kind):
    """Whether a version has no class for a kind of model."""
    return tuple(map(int, version.split("."))) < SINCE.get(kind, ())


def load(version, package, models, output):
    """Read all models with the version in the folder `package`."""
    sys.path.insert(0, package)
    import sentence_transformers

    assert sentence_transformers.__version__ == version
    found = {}
    for name, model in models.items():
        if too_old(version, model["kind"]):
            continue
        how = {"show_progress_bar": False}
        if model["kind"] == "reranker":
            read = sentence_transformers.CrossEncoder(model["folder"], device="cpu").predict
        elif model["kind"] == "sparse":
            read = sentence_transformers.SparseEncoder(model["folder"], device="cpu").encode_query
            how["convert_to_sparse_tensor"] = False
        elif model["kind"] == "multi":
            encoder = sentence_transformers.MultiVectorEncoder(model["folder"], device="cpu")
            read = encoder.encode_query
            how["convert_to_numpy"] = True
        else:
            read = sentence_transformers.SentenceTransformer(model["folder"], device="cpu").encode
        encoded = read(model["texts"], **how)
        found[name] = np.concatenate(encoded) if model["kind"] == "multi" else encoded
    np.savez(f"{output}/{version}.npz", **found)


if __name__ == "__main__":
    with open(sys.argv[1]) as file:
        job = json.load(file)
    torch.set_num_threads(1)
    for version, package in job["packages"].items():
        child = os.fork()
        if not child:
            try:
                load(version, package, job["models"], job["output"])
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stderr.flush()
                os._exit(0)
        os.waitpid(child, 0)
