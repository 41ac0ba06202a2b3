"""Compare encoding a collection with padded batches.

    python -m benchmarks.encoding                                   an encoder of 2 x 128, seconds
    python -m benchmarks.encoding --size base --passages 256        12 x 768, minutes on a CPU

Every form runs in its own process on the same weights and texts, with the lengths of MS MARCO (see
`benchmarks.finetuning`). The peers read batches of 32. A plain loop over transformers reads them in
the order of the collection with eager attention; sentence-transformers sorts by length, with
SDPA.
"""

from __future__ import annotations

import argparse
import json
import time

import numpy as np
import torch

from benchmarks.finetuning import SIZES, batch, network, padded
from benchmarks.forms import measure_each
from benchmarks.tables import table
from cdmae.models.checkpoint import Model
from cdmae.models.ragged import Ragged
from cdmae.retrieval import vectors
from cdmae.training import setup

FORMS = {
    "eager": "padded, in order, eager",
    "sorted": "padded, sorted, SDPA",
    "ours": "ours: packed, sorted",
    "ours_bf16": "the same in bf16, as on a GPU",
}


@torch.inference_mode()
def encode(form: str, size: str, read: Ragged) -> np.ndarray:
    """Compute the vectors [n, D] of all sequences."""
    model = network(size).eval()
    if form.startswith("ours"):
        cpu = torch.device("cpu")
        with setup.autocast("bf16" if form == "ours_bf16" else "fp32", cpu):
            return vectors.encode(Model("retriever", model, None, {}, "fp32"), read, cpu)
    model.set_attn_implementation("eager" if form == "eager" else "sdpa")
    order = np.arange(len(read)) if form == "eager" else np.argsort(-read.lengths, kind="stable")
    found = np.empty((len(read), model.config.hidden_size), dtype=np.float32)
    for begin in range(0, len(read), 32):
        rows = order[begin : begin + 32]
        found[rows] = model(**padded(read, rows)).last_hidden_state[:, 0].numpy()
    return found


def measure(form: str, arguments: argparse.Namespace) -> dict[str, object]:
    """Return CPU seconds for all passages, and the vectors of the first passages."""
    setup.set_up(arguments.threads)
    read = batch(arguments.size, 1, arguments.passages).sequences.take(
        np.arange(1, arguments.passages + 1)
    )
    encode(form, arguments.size, read.take(np.arange(8)))
    taken = []
    for _ in range(arguments.repeats):
        begun = time.process_time()
        found = encode(form, arguments.size, read)
        taken.append(time.process_time() - begun)
    return {"seconds": min(taken), "vectors": found[:16].tolist()}


def main() -> None:
    """Measure every form and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", choices=SIZES, default="tiny")
    parser.add_argument("--passages", type=int, default=2000)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument(
        "--form", choices=FORMS, help="internal: measure this form only and print JSON"
    )
    arguments = parser.parse_args()
    if arguments.form:
        print(json.dumps(measure(arguments.form, arguments)))
        return
    found = measure_each("encoding", FORMS)
    peer = found["eager"]
    print(
        f"{arguments.size}, {arguments.passages:,} passages of up to "
        f"{SIZES[arguments.size][4]} word-pieces\n"
    )
    rows = []
    for form, each in found.items():
        gap = np.abs(np.array(each["vectors"]) - np.array(peer["vectors"])).max()
        rows.append(
            {
                "form": FORMS[form],
                "passages per cpu-s": f"{arguments.passages / each['seconds']:,.1f}",
                "speed": f"{peer['seconds'] / each['seconds']:.2f} x",
                "largest difference": f"{gap:.1e}",
            }
        )
    print(table(rows))


if __name__ == "__main__":
    main()
