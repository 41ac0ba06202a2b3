"""Read networks with strict checks, and write them as transformers does.

Other libraries load an incomplete checkpoint with a warning at most: an encoder with random layers
then trains without an error and scores a few points lower. Here the log names all new weights,
and a checkpoint with missing encoder weights is refused.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from cdmae.config import pretrained
from cdmae.config.pretrained import FAMILIES
from cdmae.errors import InputError, cause
from cdmae.files import read_json
from cdmae.formats import listed
from cdmae.models import architectures, weights

if TYPE_CHECKING:
    from transformers import PreTrainedModel


# --- reading --------------------------------------------------------------------------------------


def read(
    name: str,
    source: Path | str,
    kind: str,
    *,
    new_head: bool = False,
    seed: int = 0,
    remedy: str = "",
) -> tuple[PreTrainedModel, list[str]]:
    """Read a network from a folder or the hub (``name@revision``): float32, evaluation mode.

    name, remedy: the first and the last words of every error message. kind: a key of
    `cdmae.models.architectures.KINDS`. new_head: whether the weights of the head may be missing.
    Missing weights are drawn with `seed`; their names are the second result.

    Raises `InputError` for a missing or damaged file, for an unknown type of model, and for weights
    that are not finite or do not agree with config.json.
    """
    import transformers

    folder, revision = pretrained.divided(str(source))
    with reported(name, remedy):
        config = transformers.AutoConfig.from_pretrained(
            folder, revision=revision, trust_remote_code=False
        )
    family = config.model_type
    if family not in FAMILIES:
        raise InputError(f"{name} has the model type {family!r}; expected {', '.join(FAMILIES)}")
    options: dict[str, Any] = {}
    if kind == "retriever" and family in architectures.POOLED:
        options["add_pooling_layer"] = False
    if kind == "reranker":
        options["num_labels"] = 1
    network_type = getattr(transformers, architectures.KINDS[kind])
    with reported(name, remedy), weights.seeded(seed):
        network, loaded = network_type.from_pretrained(
            folder,
            revision=revision,
            output_loading_info=True,
            ignore_mismatched_sizes=True,
            **options,
        )
    network = network.float().eval()
    missing = sorted({*loaded["missing_keys"], *(key for key, *_ in loaded["mismatched_keys"])})
    encoder = f"{network.base_model_prefix}."
    lacking = [key for key in missing if key.startswith(encoder) and ".pooler." not in key]
    if lacking or (missing and not new_head):
        named = listed(lacking or missing, most=3)
        fault = f"lacks {named} in the shape that its config.json requires"
        raise InputError(f"{name} {fault}{remedy}")
    for key, weight in network.named_parameters():
        if not torch.isfinite(weight).all():
            fault = f"has NaN or infinity in {key}: it is damaged, or its training diverged"
            raise InputError(f"{name} {fault}{remedy}")
    network.name_or_path = str(source)  # with the revision
    return network, missing


@contextmanager
def reported(name: str, remedy: str = "") -> Iterator[None]:
    """Turn any error into an `InputError`: transformers may raise any type for a bad file."""
    from safetensors import SafetensorError

    try:
        with _quiet():
            yield
    except SafetensorError as error:
        words = (
            f"its model.safetensors, or another file of weights, is damaged ({error}), or is a "
            "pointer that `git lfs pull` replaces"
        )
        raise InputError(f"{name} cannot be read: {words}{remedy}") from None
    except Exception as error:
        raise InputError(f"{name} cannot be read: {cause(error)}{remedy}") from None


# --- commits --------------------------------------------------------------------------------------


def commits(**models: Path | str) -> dict[str, str]:
    """Return a mapping from names to commits of models from the hub; omit models without one.

    The hub's cache records the commit of a model that was read. The folder of an encoder that was
    trained here records the commit of its initial checkpoint.
    """
    from huggingface_hub import try_to_load_from_cache

    found = {}
    for name, model in models.items():
        about = Path(model) / "about.json"
        if model and not Path(model).is_dir():
            repository, revision = pretrained.divided(str(model))
            file = try_to_load_from_cache(repository, "config.json", revision=revision)
            found[name] = Path(file).parent.name if isinstance(file, str) else None
        elif model and about.exists():
            found[name] = read_json(about).get("commits", {}).get(name)
    return {name: commit for name, commit in found.items() if commit}


# --- writing --------------------------------------------------------------------------------------


def write(folder: Path, network: PreTrainedModel, left_out: tuple[str, ...] = ()) -> None:
    """Write config and weights; transformers loads them without a warning.

    For most types, ``AutoModel`` expects a pooler. No retriever has one, so zeros are written.
    left_out: prefixes of the names of weights that are stored elsewhere.
    """
    stored = {
        name: weight
        for name, weight in network.state_dict().items()
        if not name.startswith(left_out)
    }
    if (
        network.config.model_type in architectures.POOLED
        and getattr(network, "pooler", network) is None
    ):
        width = network.config.hidden_size
        stored["pooler.dense.weight"] = torch.zeros(width, width)
        stored["pooler.dense.bias"] = torch.zeros(width)
    with _quiet():  # with current names, even if old names were read
        network.save_pretrained(folder, state_dict=stored, save_original_format=False)
    for file in folder.glob("*.safetensors"):  # which have the mode 0600
        shutil.copymode(folder / "config.json", file)


@contextmanager
def _quiet() -> Iterator[None]:
    """Hide progress bars and tables of weights: `read` reports missing weights itself."""
    from transformers.utils import logging

    level = logging.get_verbosity()
    bar = logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(level)
        if bar:
            logging.enable_progress_bar()
