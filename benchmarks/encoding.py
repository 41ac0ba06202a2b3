"""Compare encoding a collection with sorted padded batches.

    python -m benchmarks.encoding                                   an encoder of 2 x 128, seconds
    python -m benchmarks.encoding --size base --passages 256        12 x 768, minutes on a CPU

The lengths are those of MS MARCO (see `benchmarks.finetuning`). The peer reads batches of 32 that
are sorted by length, with SDPA, as sentence-transformers does. Networks are made before the time is
taken. Fails unless all forms have the same vectors.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable

import numpy as np
import torch

from benchmarks import forms
from benchmarks.finetuning import SIZES, batch, network, padded
from cdmae.models.checkpoint import Model
from cdmae.retrieval import vectors
from cdmae.training import setup

FORMS = {
    "sorted": "transformers, sorted, SDPA",
    "sorted_bf16": "transformers, sorted, SDPA",
    "ours": "ours",
    "ours_bf16": "ours",
}
BATCH = 32  # sentence-transformers' default


def start(form: str, given: argparse.Namespace) -> Callable[[], np.ndarray]:
    """Return a form's encoder, which returns the vectors [n, D] of all passages."""
    cpu = torch.device("cpu")
    model = network(given.size).eval()
    read = batch(given.size, 1, given.passages).sequences
    read = read.take(np.arange(1, given.passages + 1))
    order = np.argsort(-read.lengths, kind="stable")

    def theirs() -> np.ndarray:
        found = np.empty((len(read), model.config.hidden_size), dtype=np.float32)
        for begin in range(0, len(read), BATCH):
            rows = order[begin : begin + BATCH]
            found[rows] = model(**padded(read, rows)).last_hidden_state[:, 0].float().numpy()
        return found

    @torch.inference_mode()
    def once() -> np.ndarray:
        with setup.autocast(forms.precision(form), cpu):
            if form.startswith("sorted"):
                return theirs()
            return vectors.encode(Model("retriever", model, None, {}, "fp32"), read, cpu)

    return once


def main() -> None:
    """Measure every form and print the table."""
    parser = forms.parser(__doc__, passages=2000)
    parser.add_argument("--size", choices=SIZES, default="tiny")
    given = parser.parse_args()
    size = SIZES[given.size]
    work = f"{size[:2]}, {given.passages:,} passages of up to {size[4]} word-pieces"
    forms.compare(start, FORMS, given, f"encoding, {given.size}", work=work)


if __name__ == "__main__":
    main()
