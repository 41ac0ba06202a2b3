"""A model as an ONNX file, with its pooling and normalisation inside the graph.

torch traces the network, and onnxruntime checks the file against the model before it is kept. The
file of a retriever or an encoder returns ``sentence_embedding`` and ``last_hidden_state``.
``last_hidden_state`` is for programs that pool by ``1_Pooling/config.json``, such as fastembed. The
file of a reranker returns ``logits``.

    B  texts        T  word-pieces of the longest text        D  dimensions, or V word-pieces
"""

from __future__ import annotations

import contextlib
import importlib.util
import io
import logging
import warnings
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from cdmae.errors import InputError
from cdmae.models.checkpoint import Model

NEEDED = ("onnx", "onnx_ir", "onnxruntime", "onnxscript")
FILE = "onnx/model.onnx"  # where Optimum and sentence-transformers look for it
LARGEST = 1_900_000_000  # bytes: a file with its weights inside must stay below 2 GiB
TOLERANCE = 1e-5  # of the largest number of a vector, or of 1 if that is larger


def check_packages() -> None:
    """Raise `InputError` if the packages that write and read ONNX are not installed."""
    missing = [name for name in NEEDED if importlib.util.find_spec(name) is None]
    if missing:
        raise InputError(
            f"an ONNX file needs packages that are not installed ({', '.join(missing)}); "
            "./run export installs them as pinned, and --no-onnx leaves the file out"
        )


def reason_against(model: Model) -> str:
    """Explain why a model cannot be exported to ONNX; empty if it can."""
    if model.head == "multi":
        return "a model with a vector per word-piece has no ONNX file: PyLate reads its folder"
    if model.head == "unified":
        return "a unified retriever, whose texts have two vectors, has no ONNX file"
    if model.pieces == "own":
        return "a model that weights only a text's own word-pieces has no ONNX file"
    return ""


def write(model: Model, folder: Path, texts: Sequence[str], ours: np.ndarray | None = None) -> Path:
    """Write ``onnx/model.onnx`` into a model's folder, and return its path.

    texts: example passages; a reranker scores pairs of consecutive texts. ours: the vectors [B, D]
    that cdmae computes for the texts, which the file must reproduce; without them, it must
    reproduce torch's output.

    Raises `InputError` if the file's numbers differ from the model's by more than `TOLERANCE`.
    """
    tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
    inputs = tokenised(tokenizer, model, texts)
    network = Whole(model).eval()
    with torch.no_grad():
        expected = network(**inputs)[0].numpy() if ours is None else ours
    path = folder / FILE
    path.parent.mkdir(exist_ok=True)
    sample = {name: values[:2] for name, values in inputs.items()}
    sizes = {0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC}
    with quiet():
        program = torch.onnx.export(
            network,
            kwargs=sample,
            dynamo=True,
            dynamic_shapes=dict.fromkeys(sample, sizes),
            output_names=network.outputs,
            verbose=False,
        )
    size = sum(weight.numel() * 4 for weight in network.parameters())
    program.save(path, external_data=size > LARGEST)
    found = run(path, inputs)
    scale = np.maximum(1.0, np.abs(expected).max(axis=-1, keepdims=True))
    difference = float((np.abs(found - expected) / scale).max())
    if not difference <= TOLERANCE:
        raise InputError(
            f"{path} returns numbers that differ by {difference:.1e} from the model's; "
            f"expected {TOLERANCE:.0e}. --no-onnx leaves the file out"
        )
    return path


def run(path: Path, inputs: dict[str, Tensor]) -> np.ndarray:
    """Return the first output of an ONNX file, computed by onnxruntime on the CPU."""
    import onnxruntime

    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    first = session.get_outputs()[0].name
    return session.run([first], {name: each.numpy() for name, each in inputs.items()})[0]


def tokenised(
    tokenizer: PreTrainedTokenizerBase, model: Model, texts: Sequence[str]
) -> dict[str, Tensor]:
    """Return the network's inputs for texts, or for a reranker's pairs of texts: int64 [B, T]."""
    longest = model.lengths.get("passage_length") or max(model.lengths.values())
    sequences = [list(texts)]
    if model.kind == "reranker":
        sequences = [list(texts[:-1]), list(texts[1:])]
    elif prompt := model.prompts.get("passage_prompt"):
        sequences = [[prompt.text + text for text in texts]]
    read = tokenizer(
        *sequences, padding=True, truncation=True, max_length=longest, return_tensors="pt"
    )
    return dict(read)


class Whole(nn.Module):
    """A network with the pooling and the normalisation of its model."""

    def __init__(self, model: Model) -> None:
        """Store the network and the pooling settings of a model."""
        super().__init__()
        self.network = model.network.float().cpu()
        self.model = model

    @property
    def outputs(self) -> list[str]:
        """Return the names of the outputs."""
        if self.model.kind == "reranker":
            return ["logits"]
        if self.model.head == "sparse":
            return ["sentence_embedding"]
        return ["sentence_embedding", "last_hidden_state"]

    def forward(
        self, input_ids: Tensor, attention_mask: Tensor, token_type_ids: Tensor | None = None
    ) -> tuple[Tensor, ...]:
        """Compute the outputs for padded texts; `attention_mask` [B, T] is 0 at padding."""
        inputs = {"input_ids": input_ids, "attention_mask": attention_mask}
        if token_type_ids is not None:
            inputs["token_type_ids"] = token_type_ids
        if self.model.kind == "reranker":
            return (self.network(**inputs).logits,)
        mask = attention_mask[..., None].to(torch.float32)
        if self.model.head == "sparse":
            # equation 6 of SPLADE v2; padding has no weight
            weights = torch.log1p(torch.relu(self.network(**inputs).logits))
            return ((weights * mask).amax(1),)
        states = self.network.base_model(**inputs).last_hidden_state
        pooled = states[:, 0]
        if self.model.pooling == "mean":
            pooled = (states * mask).sum(1) / mask.sum(1)
        if self.model.similarity == "cosine":
            pooled = functional.normalize(pooled, dim=-1)
        return pooled, states


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Hide the progress of torch's exporter, and its notes on packages that it does not need."""
    loggers = [logging.getLogger(name) for name in ("torch.onnx", "onnxscript", "onnx_ir")]
    levels = [logger.level for logger in loggers]
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for logger in loggers:
            logger.setLevel(logging.ERROR)
        try:
            yield
        finally:
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)
