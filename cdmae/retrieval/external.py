"""Third-party retrievers in sentence-transformers, with their own modules, pooling and prompts.

Vectors are always compared by inner product. The vectors of a dense model with cosine similarity
are normalised, which is equivalent; models that use a distance are rejected. A `SparseEncoder`
returns sparse matrices, and a `MultiVectorEncoder` a vector per word-piece. Our own sparse head
computes SPLADE's weights where it can (`_use_own_head`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import torch
from scipy import sparse

from cdmae.collections.store import count_passages, stream_passages
from cdmae.config import pretrained
from cdmae.errors import InputError
from cdmae.files import read_json
from cdmae.log import Progress, say
from cdmae.models import networks
from cdmae.models.checkpoint import Head
from cdmae.models.heads import sparse as sparse_head
from cdmae.models.packed import pack
from cdmae.models.ragged import Ragged, starts_of
from cdmae.retrieval import asking, kinds
from cdmae.retrieval.kinds.multi import MultiVectors
from cdmae.retrieval.shards import Shard, Vectors, cut
from cdmae.training import setup

if TYPE_CHECKING:
    from sentence_transformers import MultiVectorEncoder, SentenceTransformer, SparseEncoder

    Loaded = SentenceTransformer | SparseEncoder | MultiVectorEncoder

SHARD = 1 << 12  # passages, at most minutes of a slow model; a multiple of `READ`
READ = 1024  # texts that are sorted by length together
# texts per batch; in sentence-transformers, the logits of 16 texts of 512 word-pieces x 30,522 take
# 1 GB, several times
BATCHES = {"dense": 64, "sparse": 16, "multi": 64}
CLASSES = {
    "dense": "SentenceTransformer",
    "sparse": "SparseEncoder",
    "multi": "MultiVectorEncoder",
}
# how sentence-transformers may compare vectors; with multi, rankings are the same
COMPARED = {
    "dense": ("dot", "cosine"),
    "sparse": ("dot",),
    "multi": ("maxsim", "meanmaxsim"),
}


class Encoder:
    """A third party's retriever; `cdmae.retrieval.asking.encoder` describes the methods."""

    def __init__(self, system: dict[str, Any], length: int = 0, threads: int = 1) -> None:
        """Take the settings of a system.

        system: `model`, and perhaps the other settings of the kind external. length: texts
        are cut at so many word-pieces; 0: at the system's `query_length` and `passage_length`, or
        the model's own.
        """
        setup.set_up(threads)
        self.system = system
        self.length = length

    def queries(self, texts: Sequence[str], progress: Progress | None = None) -> Vectors:
        """Encode queries, each after the system's prompt or the model's own: [Q, D]."""
        loaded = self._loaded("query_length")
        prompt = self.system.get("query_prompt", "")
        return self._in_parts(loaded, "query", list(texts) or [""], prompt, progress)[: len(texts)]

    def passages(self, collection: Path, progress: Progress | None = None) -> list[Shard]:
        """Return the shards of a collection's titles and texts; see `vectors.Encoder.passages`."""
        loaded = self._loaded("passage_length")
        prompt = self.system.get("passage_prompt", "")

        def make(first: int, last: int) -> Vectors:
            tables = stream_passages(collection, ["title", "text"], first=first, last=last)
            columns = pa.concat_tables(tables).to_pydict()
            texts = [
                f"{title} {text}" if title else text
                for title, text in zip(*columns.values(), strict=True)
            ]
            return self._in_parts(loaded, "document", texts, prompt, progress)

        return cut(count_passages(collection), make, SHARD)

    def _loaded(self, key: str) -> Loaded:
        length = self.length or self.system.get(key, 0)
        return asking.loaded(load, self.system["model"], length, self.system.get("head", "auto"))

    def _in_parts(
        self, model: Loaded, task: str, texts: list[str], prompt: str, progress: Progress | None
    ) -> Vectors:
        """Encode at least one text, `READ` at a time: [n, D]."""
        parts = []
        for begin in range(0, len(texts), READ):
            some = texts[begin : begin + READ]
            parts.append(self._encode(model, task, some, prompt))
            if progress:
                progress.advance(len(some))
        return kinds.of(parts[0]).joined(parts)

    def _encode(self, model: Loaded, task: str, texts: list[str], prompt: str) -> Vectors:
        """Encode texts, [n, D]; task: `query` or `document`.

        Raises `InputError` for NaN or infinity.
        """
        kind = kind_of(model)
        how = {"prompt": prompt or None, "batch_size": BATCHES[kind], "show_progress_bar": False}
        encode = partial(getattr(model, f"encode_{task}"), texts, **how)
        if kind == "sparse":
            encoded = encode(save_to_cpu=True, convert_to_sparse_tensor=False)
            found = sparse.csr_array(encoded.float().numpy())
            numbers = found.data
        elif kind == "multi":
            # the word-pieces of the vectors are unknown
            encoded = encode(convert_to_numpy=True)
            numbers = np.concatenate(encoded).astype(np.float32)
            starts = starts_of([len(own) for own in encoded])
            found = MultiVectors(numbers, starts, np.zeros(len(numbers), np.int32))
        else:
            encoded = encode(normalize_embeddings=model.similarity_fn_name == "cosine")
            found = numbers = np.asarray(encoded, np.float32)
        if not np.isfinite(numbers).all():
            raise InputError(
                f"the model {self.system['model']} returns vectors with NaN or infinity: it is "
                "damaged; use another"
            )
        return found


# --- loading --------------------------------------------------------------------------------------


def load(model: str, length: int = 0, head: str = "auto") -> Loaded:
    """Load a model from a folder, or from the hub by name.

    Files in the hub's cache are not downloaded again. Custom code of a model is not executed. Texts
    are cut at `length` word-pieces, or at the model's own limit if that is smaller or `length` is
    0. head: `dense`, `sparse`, `multi`, or `auto`, which follows the model's files.

    Raises `InputError` with the reason if loading fails.
    """
    import sentence_transformers as library

    name, revision = pretrained.divided(model)
    with networks.reported(f"the model {model}"):
        # Without a network, loading would wait for a request per file of a model in the cache.
        local = Path(name).is_dir() or bool(networks.commits(model=model))
        where_from = {"revision": revision, "local_files_only": local}
        kind = _kind(name, where_from) if head == "auto" else head
        make = getattr(library, CLASSES[kind])
        device = str(setup.device())
        loaded = make(name, trust_remote_code=False, device=device, **where_from)
        if Path(name).is_dir():
            _check_weights(loaded)
        if kind == "sparse":
            _use_own_head(loaded)
    if loaded.similarity_fn_name not in COMPARED[kind]:
        raise InputError(
            f"the model {model} compares vectors by {loaded.similarity_fn_name}; expected "
            f"{', '.join(COMPARED[kind])}"
        )
    for commit in networks.commits(model=model).values():
        say(f"{model}: using commit {commit} of the hub")
    limits = (loaded, "max_seq_length"), (loaded[0], "query_length"), (loaded[0], "document_length")
    for owner, key in limits if length else ():
        if getattr(owner, key, None):
            setattr(owner, key, min(length, getattr(owner, key)))
    # ColBERT fills queries up with [MASK] tokens.
    expansion = getattr(loaded[0], "query_expansion", None)
    if length and expansion:
        loaded[0].query_expansion = expansion | {"length": min(length, expansion["length"])}
    return loaded.eval()


def _kind(name: str, where_from: dict[str, Any]) -> str:
    """Return the kind of a model's vectors by its files; raise `InputError` if they do not tell."""
    from sentence_transformers.util import load_file_path

    def described(file_name: str) -> Any:
        file = load_file_path(name, file_name, **where_from)
        return read_json(Path(file)) if file else {}

    config = described("config.json")
    kind = pretrained.kind_by(described("config_sentence_transformers.json"), config)
    architecture = (config.get("architectures") or [""])[0]
    unclear = architecture.endswith(("ForMaskedLM", "ForSequenceClassification"))
    if kind == "dense" and unclear and not described("modules.json"):
        raise InputError(
            f"{architecture} without modules.json does not make vectors; expected another model, "
            "head: dense, for the mean of its states, or head: sparse, for SPLADE"
        )
    return kind


def _check_weights(model: Loaded) -> None:
    """Raise `InputError` if a folder lacks weights of the network, which would begin at random."""
    network = getattr(model[0], "auto_model", None)
    if network is None:
        return
    _, found = type(network).from_pretrained(network.name_or_path, output_loading_info=True)
    damaged = sorted(key for key in found["missing_keys"] if not key.startswith("pooler."))
    damaged += sorted(key for key, *_ in found["mismatched_keys"])
    if damaged:
        raise InputError(f"its files lack {len(damaged)} weights of the network: {damaged[0]}")


def _use_own_head(model: SparseEncoder) -> None:
    """Let our own sparse head compute SPLADE's weights: it never holds the logits of all positions.

    sentence-transformers computes what the head cannot: sums over positions, and networks that are
    not of `pretrained.FAMILIES`.
    """
    for chain in model.modules():  # a Router has one for queries, and one for passages
        parts = list(chain.children())
        if [type(part).__name__ for part in parts[1:]] != ["SpladePooling"]:
            continue
        read, pooling = parts
        network = read.auto_model
        is_known = network.config.model_type in pretrained.FAMILIES
        if is_known and pooling.pooling_strategy == "max":
            read.forward = dict  # the pooling gets the word-pieces
            is_twice = pooling.activation_function == "log1p_relu"
            pooling.forward = partial(_weigh, network.float(), is_twice)


def _weigh(
    network: torch.nn.Module, is_twice: bool, features: dict[str, torch.Tensor]
) -> dict[str, torch.Tensor]:
    """Return SPLADE's weights of padded texts; is_twice: their logarithms log(1 + w)."""
    seen = features["attention_mask"].bool().numpy(force=True)
    ids = features["input_ids"].numpy(force=True)[seen]
    batch = pack(Ragged(ids, starts_of(seen.sum(1))), network.device)
    weights = sparse_head.vectors(network, batch, Head())
    return {"sentence_embedding": weights.log1p() if is_twice else weights}


def kind_of(model: Loaded) -> str:
    """Return the kind of a model's vectors: `dense`, `sparse` or `multi`."""
    return next(kind for kind, name in CLASSES.items() if type(model).__name__ == name)
