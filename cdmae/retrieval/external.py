"""Third-party retrievers in sentence-transformers, with their own modules, pooling and prompts.

Vectors are always compared by inner product. The vectors of a dense model with cosine similarity
are normalised, which is equivalent; models that use a distance are rejected. A `SparseEncoder`
returns sparse matrices, and a `MultiVectorEncoder` a vector per word-piece.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy import sparse

from cdmae.collections.store import count_passages, stream_passages
from cdmae.config import pretrained
from cdmae.errors import InputError, cause
from cdmae.files import read_json
from cdmae.log import Progress, say
from cdmae.models import networks
from cdmae.models.ragged import starts_of
from cdmae.retrieval import kinds, vectors
from cdmae.retrieval.asking import Load, load_once
from cdmae.retrieval.kinds.multi import MultiVectors
from cdmae.retrieval.shards import Shard, Vectors, cut
from cdmae.training import setup

if TYPE_CHECKING:
    from sentence_transformers import MultiVectorEncoder, SentenceTransformer, SparseEncoder

    Loaded = SentenceTransformer | SparseEncoder | MultiVectorEncoder

BATCH = 64
SPARSE_BATCH = 8  # whose scores of 512 word-pieces x 30,522 take 0.5 GB, several times
# by kind of vectors: how sentence-transformers may compare them; with multi, rankings are the same
COMPARED = {
    "dense": ("dot", "cosine"),
    "sparse": ("dot",),
    "multi": ("maxsim", "meanmaxsim"),
}


class Encoder:
    """A third party's retriever; `cdmae.retrieval.asking.Encoder` describes the methods."""

    def __init__(
        self, system: dict[str, Any], length: int = 0, threads: int = 1, load: Load = load_once
    ) -> None:
        """Take the settings of a system.

        system: `model`, and perhaps the other settings of the kind external. length: texts
        are cut at so many word-pieces; 0: at the system's `query_length` and `passage_length`, or
        the model's own.
        """
        setup.set_up(threads)
        self.system = system
        self.length = length
        self.load = load

    def queries(self, texts: Sequence[str]) -> Vectors:
        """Encode queries, each after the system's prompt or the model's own: [Q, D]."""
        loaded = self._loaded("query_length")
        prompt = self.system.get("query_prompt", "")
        return self._encode(loaded, "query", list(texts) or [""], prompt)[: len(texts)]

    def passages(self, collection: Path, progress: Progress | None = None) -> list[Shard]:
        """Return the shards of a collection's titles and texts; see `vectors.Encoder.passages`."""
        loaded = self._loaded("passage_length")
        prompt = self.system.get("passage_prompt", "")

        def make(first: int, last: int) -> Vectors:
            (passages,) = stream_passages(
                collection, ["title", "text"], rows=last - first, first=first, last=last
            )
            columns = passages.to_pydict()
            texts = [
                f"{title} {text}" if title else text
                for title, text in zip(*columns.values(), strict=True)
            ]
            parts = []
            for begin in range(0, len(texts), 16 * BATCH):
                some = texts[begin : begin + 16 * BATCH]
                parts.append(self._encode(loaded, "document", some, prompt))
                if progress:
                    progress.advance(len(some))
            return kinds.of(parts[0]).joined(parts)

        size = vectors.MULTI_SHARD if kind_of(loaded) == "multi" else vectors.SHARD
        return cut(count_passages(collection), _width(loaded), make, size)

    def _loaded(self, key: str) -> Loaded:
        length = self.length or self.system.get(key, 0)
        return self.load(load, self.system["model"], length, self.system.get("head", "auto"))

    def _encode(self, model: Loaded, task: str, texts: list[str], prompt: str) -> Vectors:
        """Encode texts, [n, D]; task: `query` or `document`.

        Raises `InputError` if the model fails, or returns NaN or infinity.
        """
        name = self.system["model"]
        kind = kind_of(model)
        batch = SPARSE_BATCH if kind == "sparse" else BATCH
        how: dict[str, Any] = {"batch_size": batch, "show_progress_bar": False}
        if kind == "sparse":
            how["save_to_cpu"] = True
        elif kind == "multi":
            how["convert_to_numpy"] = True
        else:
            how["normalize_embeddings"] = model.similarity_fn_name == "cosine"
        try:
            encoded = getattr(model, f"encode_{task}")(texts, prompt=prompt or None, **how)
        except (MemoryError, OSError, torch.OutOfMemoryError):
            raise
        except Exception as error:  # from one of many libraries
            raise InputError(
                f"sentence-transformers cannot encode texts with the model {name}: {cause(error)}"
            ) from None
        if kind == "sparse":
            found = _matrix(encoded)
            numbers = found.data
        elif kind == "multi":
            # the word-pieces of the vectors are unknown
            numbers = np.concatenate(encoded).astype(np.float32)
            starts = starts_of([len(own) for own in encoded])
            found = MultiVectors(numbers, starts, np.zeros(len(numbers), np.int32))
        else:
            found = numbers = np.asarray(encoded, np.float32)
        if not np.isfinite(numbers).all():
            raise InputError(
                f"the model {name} returns vectors with NaN or infinity: it is damaged; use another"
            )
        return found


def _matrix(encoded: torch.Tensor) -> sparse.csr_array:
    """Convert a sparse tensor [n, D] to a matrix without stored zeros."""
    encoded = encoded.coalesce()
    rows, columns = encoded.indices().numpy()
    values = encoded.values().numpy().astype(np.float32)
    matrix = sparse.csr_array((values, (rows, columns)), shape=tuple(encoded.shape))
    matrix.eliminate_zeros()
    return matrix


# --- loading --------------------------------------------------------------------------------------


def load(model: str, length: int = 0, head: str = "auto") -> Loaded:
    """Load a model from a folder, or from the hub by name.

    Files in the hub's cache are not downloaded again. Custom code of a model is not executed. Texts
    are cut at `length` word-pieces, or at the model's own limit if `length` is 0. head: `dense`,
    `sparse`, `multi`, or `auto`, which follows the model's files.

    Raises `InputError` with the reason if loading fails, or if the files contradict `head`.
    """
    import sentence_transformers as library
    from transformers.utils import logging

    name, revision = pretrained.divided(model)
    logging.disable_progress_bar()  # one bar per file
    local = Path(name).is_dir()
    try:
        local = local or _is_cached(name, revision)
        where_from = {"revision": revision, "local_files_only": local}
        kind = _kind(model, name, where_from, head)
        classes = {
            "dense": library.SentenceTransformer,
            "sparse": library.SparseEncoder,
            "multi": library.MultiVectorEncoder,
        }
        device = str(setup.device())
        loaded = classes[kind](name, trust_remote_code=False, device=device, **where_from)
        if Path(name).is_dir():
            _check_weights(loaded)
    except InputError as error:
        raise InputError(f"the model {model} cannot be used: {error}") from None
    except Exception as error:  # from one of many libraries
        where = "" if local else ", which is neither a local folder nor in the hub's cache"
        pickled = isinstance(error, EOFError | pickle.UnpicklingError)
        reason = networks.PICKLED if pickled else cause(error)
        raise InputError(
            f"sentence-transformers cannot load the model {model}{where}: {reason}"
        ) from None
    finally:
        logging.enable_progress_bar()
    if loaded.similarity_fn_name not in COMPARED[kind]:
        raise InputError(
            f"the model {model} compares vectors by {loaded.similarity_fn_name}; expected "
            f"{', '.join(COMPARED[kind])}"
        )
    for commit in networks.commits(model=model).values():
        say(f"{model}: using commit {commit} of the hub")
    if length:
        _cut(loaded, length)
    return loaded.eval()


def _is_cached(name: str, revision: str) -> bool:
    """Return whether the hub's cache has a model; if not, ask the hub for it once.

    Otherwise, loading would wait for a request per file where the hub cannot be reached.
    """
    import huggingface_hub

    cached = huggingface_hub.try_to_load_from_cache(name, "config.json", revision=revision)
    if not isinstance(cached, str):
        huggingface_hub.model_info(name, revision=revision, timeout=10)
    return isinstance(cached, str)


def _kind(model: str, name: str, where_from: dict[str, Any], head: str) -> str:
    """Return the kind of a model's vectors: by its published modules, or else by `head`.

    sentence-transformers would make a model of another kind from the modules, without those that do
    not fit, and one from a network alone with modules of its own.
    """
    from sentence_transformers.util import load_file_path

    def described(file_name: str) -> Any:
        file = load_file_path(name, file_name, **where_from)
        return read_json(Path(file)) if file else {}

    config = described("config.json")
    architectures = config.get("architectures") or [""]
    published = None
    if modules := described("modules.json"):
        model_type = described("config_sentence_transformers.json").get("model_type")
        published = "sparse" if model_type == pretrained.SPARSE else "dense"
        if model_type in pretrained.MULTI:
            published = "multi"
        names = [module["type"].rpartition(".")[2] for module in modules]
        say(f"{model}: its modules are {', '.join(names)}")
    elif pretrained.STANFORD in architectures:
        published = "multi"
    if published:
        if head not in ("auto", published):
            raise InputError(f"head is {head}; expected {published}, which its files describe")
        return published
    if architectures[0].endswith("ForSequenceClassification"):
        raise InputError("it is a cross-encoder, which scores pairs; expected a model of vectors")
    if head == "auto" and architectures[0].endswith("ForMaskedLM"):
        raise InputError(
            "a language model without modules.json does not say how it makes vectors; expected "
            "head: dense, for the mean of its states, or head: sparse, for SPLADE"
        )
    return "dense" if head == "auto" else head


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


def _cut(model: Loaded, length: int) -> None:
    """Cut texts at `length` word-pieces, where the model's own limits are not smaller.

    A model's limits for queries and passages override its limit for all texts. The [MASK] tokens
    that fill up queries are limited, too.
    """
    expansion = getattr(model[0], "query_expansion", None)
    if expansion:
        model[0].query_expansion = {**expansion, "length": min(length, expansion["length"])}
    for holder, key in (
        (model, "max_seq_length"),
        (model[0], "query_length"),
        (model[0], "document_length"),
    ):
        own = getattr(holder, key, None)
        if own:
            setattr(holder, key, min(length, own))
            if length > own:
                say(
                    f"the model has a {key} of {own} word-pieces: texts are cut at this length, "
                    f"not at {length}"
                )


def kind_of(model: Loaded) -> str:
    """Return the kind of a model's vectors: `dense`, `sparse` or `multi`."""
    from sentence_transformers import MultiVectorEncoder, SparseEncoder

    if isinstance(model, SparseEncoder):
        return "sparse"
    return "multi" if isinstance(model, MultiVectorEncoder) else "dense"


def _width(model: Loaded) -> int:
    """Return the number of dimensions D of a model's vectors."""
    if kind_of(model) != "sparse":
        return model.get_embedding_dimension()
    # A sparse model reports its width only after the first text.
    return model.encode_document(["a"], show_progress_bar=False).shape[1]
