"""Files that other programs need next to a model's weights: tokenizer, modules, lengths."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

from cdmae.files import read_json, write_json
from cdmae.tokens.vocabulary import special_tokens


def write_tokenizer(folder: Path, tokenizer: Path | str, longest: int) -> None:
    """Copy the tokenizer of a folder into a model's folder, with the maximum length `longest`.

    ``special_tokens_map.json`` repeats a part of ``tokenizer_config.json``, because fastembed and
    older readers expect it.
    """
    tokenizer = Path(tokenizer)
    options = read_json(tokenizer / "tokenizer_config.json")
    shutil.copyfile(tokenizer / "tokenizer.json", folder / "tokenizer.json")
    write_json(folder / "tokenizer_config.json", {**options, "model_max_length": longest})
    write_json(folder / "special_tokens_map.json", special_tokens(tokenizer))


TRANSFORMER = "sentence_transformers.models.Transformer"


def write_layout(
    folder: Path,
    modules: Mapping[str, str],
    settings: Mapping[str, Mapping[str, Any]],
    longest: int,
    options: Mapping[str, Any],
) -> None:
    """Write the files by which sentence-transformers and other readers load a folder.

    modules: the class of each module by its folder below the model's. settings: of modules, by
    their folder. longest: the maximum length of passages. options: of
    ``config_sentence_transformers.json``.
    """
    listed = []
    for index, (path, kind) in enumerate(modules.items()):
        listed.append({"idx": index, "name": str(index), "path": path, "type": kind})
        (folder / path).mkdir(exist_ok=True)
    for path, values in settings.items():
        write_json(folder / path / "config.json", values)
    write_json(folder / "modules.json", listed)
    # vLLM reads the length only if ``do_lower_case`` is given
    lengths = {"max_seq_length": longest, "do_lower_case": False}
    write_json(folder / "sentence_bert_config.json", lengths)
    write_json(folder / "config_sentence_transformers.json", options)


def write_modules(
    folder: Path,
    *,
    width: int,
    pooling: str,
    longest: int,
    similarity: str = "dot",
    prompts: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Write the pooling, length, similarity and prompts of an encoder with one vector per text.

    All versions of sentence-transformers from 2.7 to 6 compute the same vectors from these files:

    - Modules have the names of version 2.
    - Queries and passages share one length. Version 6 has a separate key for the length of
      queries, which earlier versions refuse.
    - Text Embeddings Inference requires all four pooling modes.
    """
    modes = {
        "word_embedding_dimension": width,
        "pooling_mode_cls_token": pooling == "cls",
        "pooling_mode_mean_tokens": pooling == "mean",
        "pooling_mode_max_tokens": False,
        "pooling_mode_mean_sqrt_len_tokens": False,
    }
    modules = {"": TRANSFORMER, "1_Pooling": "sentence_transformers.models.Pooling"}
    if similarity == "cosine":
        modules["2_Normalize"] = "sentence_transformers.models.Normalize"
    options: dict[str, Any] = {"similarity_fn_name": similarity}
    if prompts:
        options |= {"prompts": dict(prompts), "default_prompt_name": None}
    write_layout(folder, modules, {"1_Pooling": modes}, longest, options)
