"""Measure the rows on training and encoding in the table of speeds, one benchmark after another.

python -m benchmarks        some minutes; on a machine that does nothing else, if possible
"""

from __future__ import annotations

import subprocess
import sys

COMMANDS = (
    "pretraining",
    "finetuning",
    "sparse",
    "multi",
    "encoding",
    "encoding --size base --passages 256",
)


def main() -> None:
    """Run every command; stop at the first that fails."""
    for command in COMMANDS:
        print(f"benchmarks.{command}", flush=True)
        subprocess.run([sys.executable, "-m", *f"benchmarks.{command}".split()], check=True)


if __name__ == "__main__":
    main()
