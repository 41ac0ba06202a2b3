"""Files that other programs need next to a model's weights: tokenizer, pooling, lengths."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

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


def write_modules(
    folder: Path,
    *,
    width: int,
    pooling: str,
    longest: int,
    similarity: str = "dot",
    prompts: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Write pooling, length, similarity and prompts for sentence-transformers and other readers.

    All versions of sentence-transformers from 2.7 to 6 compute the same vectors from these files:

    - Modules have the names of version 2.
    - Queries and passages share one length. Version 6 has a separate key for the length of
      queries, which earlier versions refuse.
    - Text Embeddings Inference requires all four pooling modes.
    - vLLM reads the length only if ``do_lower_case`` is given.
    """
    modules = [_module(0, "", "Transformer"), _module(1, "1_Pooling", "Pooling")]
    if similarity == "cosine":
        modules.append(_module(2, "2_Normalize", "Normalize"))
    for module in modules[1:]:
        (folder / module["path"]).mkdir()
    write_json(folder / "modules.json", modules)
    modes = {
        "word_embedding_dimension": width,
        "pooling_mode_cls_token": pooling == "cls",
        "pooling_mode_mean_tokens": pooling == "mean",
        "pooling_mode_max_tokens": False,
        "pooling_mode_mean_sqrt_len_tokens": False,
    }
    write_json(folder / "1_Pooling" / "config.json", modes)
    lengths = {"max_seq_length": longest, "do_lower_case": False}
    write_json(folder / "sentence_bert_config.json", lengths)
    options = {"similarity_fn_name": similarity}
    if prompts:
        options |= {"prompts": dict(prompts), "default_prompt_name": None}
    write_json(folder / "config_sentence_transformers.json", options)


def _module(index: int, path: str, name: str) -> dict[str, int | str]:
    """Return an entry of modules.json."""
    kind = f"sentence_transformers.models.{name}"
    return {"idx": index, "name": str(index), "path": path, "type": kind}
