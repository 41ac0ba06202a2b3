"""Running third-party retrievers in sentence-transformers, with their pooling and prompts.

Vectors are always compared by inner product. The vectors of a dense model with cosine similarity
are normalised, which is equivalent; models that use a distance are rejected. A `SparseEncoder`
returns sparse matrices, and a `MultiVectorEncoder` a vector per word-piece.
"""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from scipy import sparse

from cdmae.collections.store import count_passages, stream_passages
from cdmae.config import pretrained
from cdmae.errors import InputError, cause
from cdmae.files import digest, read_json
from cdmae.log import Progress, say
from cdmae.models import networks
from cdmae.models.ragged import starts_of
from cdmae.retrieval import vectors
from cdmae.retrieval.asking import Load, load_once
from cdmae.retrieval.multivectors import MultiVectors
from cdmae.retrieval.vectors import Shard, Vectors

if TYPE_CHECKING:
    from sentence_transformers import MultiVectorEncoder, SentenceTransformer, SparseEncoder

    Encoder = SentenceTransformer | SparseEncoder | MultiVectorEncoder

BATCH = 64


def load(model: str, length: int = 0, head: str = "auto") -> Encoder:
    """Load a model from a folder, or from the hub by name.

    Raises `InputError` with the reason if loading fails.

    Files in the hub's cache are not downloaded again. Custom code of a model is not executed. Texts
    are cut at `length` word-pieces, or at the model's own limit if `length` is 0. head: `dense`,
    `sparse`, `multi`, or `auto`, which follows the model's files.
    """
    import huggingface_hub
    from huggingface_hub import try_to_load_from_cache
    from transformers.utils import logging

    name, revision = pretrained.divided(model)
    local = Path(name).is_dir()
    logging.disable_progress_bar()  # one bar per file
    try:
        networks.check_downloaded(Path(name))
        if not local:
            local = isinstance(try_to_load_from_cache(name, "config.json", revision=revision), str)
        if not local:  # one request; otherwise loading would wait for a request per file
            huggingface_hub.model_info(name, revision=revision, timeout=10)
        where_from = {"revision": revision, "local_files_only": local}
        loaded = _class_of(head, name, where_from)(name, trust_remote_code=False, **where_from)
    except Exception as error:  # from one of many libraries
        where = "" if local else ", which is neither a local folder nor in the hub's cache"
        pickled = isinstance(error, EOFError | pickle.UnpicklingError)
        reason = networks.PICKLED if pickled else cause(error)
        raise InputError(
            f"sentence-transformers cannot load the model {model}{where}: {reason}"
        ) from None
    finally:
        logging.enable_progress_bar()
    compared: tuple[str, ...] = ("dot",) if is_sparse(loaded) else ("dot", "cosine")
    if is_multi(loaded):
        compared = ("maxsim", "meanmaxsim")  # their rankings are the same
        _shorten_expansion(loaded, length)
    if loaded.similarity_fn_name not in compared:
        raise InputError(
            f"the model {model} compares vectors by {loaded.similarity_fn_name}; allowed: "
            f"{', '.join(compared)}"
        )
    for commit in networks.commits(model=model).values():
        say(f"{model}: using commit {commit} of the hub")
    # A model's limits for queries and passages override its limit for all texts.
    for holder, key in (
        (loaded, "max_seq_length"),
        (loaded[0], "query_length"),
        (loaded[0], "document_length"),
    ):
        own = getattr(holder, key, None)
        if own is not None and not (isinstance(own, int | float) and own >= 1):
            raise InputError(f"the model {model} has a {key} of {own}; allowed: a number from 1")
        if length and own:
            setattr(holder, key, min(length, own))
            if length > own:
                say(
                    f"the model has a {key} of {own} word-pieces: texts are cut at this length, "
                    f"not at {length}"
                )
    return loaded.eval()


def _shorten_expansion(model: MultiVectorEncoder, length: int) -> None:
    """Limit the [MASK] tokens that fill up queries to `length`; 0 keeps the model's own length."""
    expansion = getattr(model[0], "query_expansion", None)
    if length and expansion:
        model[0].query_expansion = {**expansion, "length": min(length, expansion["length"])}


def _class_of(head: str, name: str, where_from: dict[str, Any]) -> type[Encoder]:
    """Return the sentence-transformers class that can load a model."""
    from sentence_transformers import MultiVectorEncoder, SentenceTransformer, SparseEncoder
    from sentence_transformers.util import load_file_path

    def described(file_name: str) -> dict[str, Any]:
        file = load_file_path(name, file_name, **where_from)
        return read_json(Path(file)) if file else {}

    if head == "auto":
        model_type = described("config_sentence_transformers.json").get("model_type")
        architectures = described("config.json").get("architectures") or ()
        head = "sparse" if model_type == pretrained.SPARSE else "dense"
        if model_type in pretrained.MULTI or pretrained.STANFORD in architectures:
            head = "multi"
    classes = {"dense": SentenceTransformer, "sparse": SparseEncoder, "multi": MultiVectorEncoder}
    return classes[head]


def is_sparse(model: Encoder) -> bool:
    """Return whether a model computes sparse vectors."""
    from sentence_transformers import SparseEncoder

    return isinstance(model, SparseEncoder)


def is_multi(model: Encoder) -> bool:
    """Return whether a model computes a vector per word-piece."""
    from sentence_transformers import MultiVectorEncoder

    return isinstance(model, MultiVectorEncoder)


def width(model: Encoder) -> int:
    """Return the number of dimensions D of a model's vectors."""
    if not is_sparse(model):
        return model.get_embedding_dimension()
    # A sparse model reports its width only after the first text.
    return model.encode_document(["a"], show_progress_bar=False).shape[1]


def encode_passages(
    model: str,
    collection: Path,
    output: Path,
    length: int,
    passage_prompt: str = "",
    head: str = "auto",
    engine: str = "exact",
) -> None:
    """Encode a collection's titles and texts, and write float32 shards [p, D].

    A passage follows the given prompt, or else the model's own, and is cut at `length` word-pieces.
    A killed run resumes after its last complete shard.
    """
    with Progress(
        count_passages(collection), unit="passages", label=f"encode with {model}"
    ) as progress:
        key = [
            model,
            digest(collection / "passages.parquet"),
            digest(model),
            vectors.SHARD,
            length,
            passage_prompt,
            head,
        ]
        made = shards(model, collection, length, progress, passage_prompt, head)
        vectors.write(output, made, key, progress, engine)


def shards(
    model: str,
    collection: Path,
    length: int,
    progress: Progress | None = None,
    prompt: str = "",
    head: str = "auto",
) -> list[Shard]:
    """Return shards as in `encode_passages`; each is encoded again at every access."""
    loaded = load(model, length, head)

    def make(first: int, last: int) -> Vectors:
        (passages,) = stream_passages(
            collection, ["title", "text"], rows=vectors.SHARD, first=first, last=last
        )
        columns = passages.to_pydict()
        texts = [
            f"{title} {text}" if title else text
            for title, text in zip(*columns.values(), strict=True)
        ]
        batches = (texts[begin : begin + 16 * BATCH] for begin in range(0, len(texts), 16 * BATCH))
        encoded = [
            _encode(model, loaded.encode_document, batch, loaded, prompt, progress)
            for batch in batches
        ]
        found = vectors.joined(encoded)
        return found.rounded() if isinstance(found, MultiVectors) else found

    size = vectors.MULTI_SHARD if is_multi(loaded) else 0
    return vectors.cut(count_passages(collection), width(loaded), make, size)


def passages(system: dict[str, Any], collection: Path, length: int, _: int) -> list[Shard]:
    """Return the vectors of a collection by the model in `system`, encoded at every access."""
    cut = length or system["passage_length"]
    prompt, head = system["passage_prompt"], system["head"]
    return shards(system["model"], collection, cut, prompt=prompt, head=head)


def encode_queries(
    model: str,
    texts: list[str],
    length: int,
    prompt: str = "",
    head: str = "auto",
    loading: Load = load_once,
) -> Vectors:
    """Encode queries with a prompt before each, cut at `length` word-pieces: float32 [Q, D].

    The default prompt is the model's own.
    """
    loaded = loading(load, model, length, head)
    return _encode(model, loaded.encode_query, texts or [""], loaded, prompt)[: len(texts)]


def _encode(
    name: str,
    function: Callable[..., Any],
    texts: list[str],
    model: Encoder,
    prompt: str,
    progress: Progress | None = None,
) -> Vectors:
    """Encode texts, float32 [n, D].

    Raises `InputError` if the model `name` fails, or returns NaN or infinity.
    """
    task = "query_length" if function == model.encode_query else "document_length"
    _check_room(name, model, prompt, task)
    how: dict[str, Any] = {"batch_size": BATCH, "show_progress_bar": False}
    if is_sparse(model):
        how["save_to_cpu"] = True
    elif is_multi(model):
        how["convert_to_numpy"] = True
    else:
        how["normalize_embeddings"] = model.similarity_fn_name == "cosine"
    try:
        encoded = function(texts, prompt=prompt or None, **how)
    except (MemoryError, OSError, torch.OutOfMemoryError):
        raise
    except Exception as error:  # from one of many libraries
        raise InputError(
            f"sentence-transformers cannot encode texts with the model {name}: {cause(error)}"
        ) from None
    if is_multi(model):
        found = _multi_vectors(encoded)
        numbers = found.values
    elif is_sparse(model):
        found = _matrix(encoded)
        numbers = found.data
    else:
        found = np.asarray(encoded, np.float32)
        numbers = found
    shape = (len(texts), found.shape[1] if is_sparse(model) else model.get_embedding_dimension())
    if found.shape != shape:
        raise InputError(
            f"the model {name} returns an array of shape {found.shape} for {len(texts)} texts; "
            "allowed: one vector per text"
        )
    if not np.isfinite(numbers).all():
        raise InputError(
            f"the model {name} returns vectors with NaN or infinity: it is damaged; use another"
        )
    if progress:
        progress.advance(len(texts))
    return found


def _multi_vectors(encoded: list[np.ndarray]) -> MultiVectors:
    """Join the vectors of texts, [n, D] each; the word-pieces of the vectors are unknown."""
    values = np.concatenate(encoded).astype(np.float32)
    starts = starts_of([len(own) for own in encoded])
    return MultiVectors(values, starts, np.zeros(len(values), np.int32))


def _matrix(vectors: torch.Tensor) -> sparse.csr_array:
    """Convert a sparse tensor [n, D] to a matrix without stored zeros."""
    vectors = vectors.coalesce()
    rows, columns = vectors.indices().numpy()
    values = vectors.values().numpy().astype(np.float32)
    matrix = sparse.csr_array((values, (rows, columns)), shape=tuple(vectors.shape))
    matrix.eliminate_zeros()
    return matrix


def _check_room(name: str, model: Encoder, prompt: str, task: str) -> None:
    """Refuse a prompt that leaves no room for text, because all vectors would then be equal.

    Models without a transformers tokenizer are not checked. task: `query` or `document`, because
    some models have different limits for them.
    """
    from transformers import PreTrainedTokenizerBase

    if not isinstance(model.tokenizer, PreTrainedTokenizerBase):
        return
    lengths = [model.max_seq_length, getattr(model[0], task, None)]
    length = min(filter(None, lengths), default=math.inf)
    taken = len(model.tokenizer(prompt)["input_ids"])
    if taken >= length:
        raise InputError(
            f"the model {name} cuts texts at {length} word-pieces, and the prompt and the special "
            f"tokens take {taken}; allowed: a shorter prompt, or a length above {taken}"
        )


def encode_asked(
    system: dict[str, Any], texts: list[str], length: int, threads: int, loading: Load
) -> Vectors:
    """Encode queries for `cdmae.retrieval.asking.encode`; `system` holds the model's settings."""
    cut = length or system["query_length"]
    prompt = system["query_prompt"]
    return encode_queries(system["model"], texts, cut, prompt, system["head"], loading)
