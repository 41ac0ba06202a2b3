"""Check and measure the GPU paths, on a machine with one GPU or, with toy sizes, on a CPU.

    python -m benchmarks.gpu --output FOLDER [--minutes 9] [--parts PART...]
    torchrun --nproc-per-node 2 -m benchmarks.gpu --output FOLDER --parts machine parity speed

The parts most likely to break run first, each in its own process. A part that crashes, fails an
assertion on the device or hangs does not stop the others. After every row FOLDER holds all rows in
results.json and results.md. Each part has its share of the minutes; the next part gets the minutes
that it leaves. A package that is not installed becomes a row. `benchmarks/gpu.md` lists the files
to carry to a machine without a network.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import shutil
import time
from pathlib import Path

from benchmarks.gpu.results import Results, received, work

PARTS = {
    "machine": 0.1,
    "parity": 0.3,
    "search": 0.4,
    "speed": 0.75,
    "pipeline": 1.0,
}  # share of the time at the end
GRACE = 15.0  # seconds before a part's end from which it begins nothing more
IMPORTED = [
    "torch",
    "transformers",
    "pandas",
    "cdmae.pretraining.trainer",
    "benchmarks.pretraining",
    "benchmarks.finetuning",
]


def main() -> None:
    """Run the parts one after the other."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--output", type=Path, required=True, metavar="FOLDER")
    parser.add_argument("--minutes", type=float, default=9.0)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    options = parser.parse_args()
    begun = time.monotonic()
    first = os.environ.get("RANK", "0") == "0"
    results = Results(options.output) if first else None
    # A library that asks for a GPU while it is imported would spoil CUDA for all that are forked
    # from that process.
    context = multiprocessing.get_context("spawn" if shutil.which("nvidia-smi") else "forkserver")
    context.set_forkserver_preload(IMPORTED)
    for number, part in enumerate(PARTS):
        if part not in options.parts:
            continue
        end = begun + 60 * options.minutes * PARTS[part]
        line, other = context.Pipe(duplex=False)
        process = context.Process(
            target=work, args=(part, number, end - GRACE, options.output, other)
        )
        process.start()
        other.close()
        for row in received(line, process, end):
            if results:
                results.add(part, row)


if __name__ == "__main__":
    main()
