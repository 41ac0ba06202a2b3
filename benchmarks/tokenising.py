"""Compare tokenising, and tokenising with importance, with the Hugging Face tokenizer.

    python -m benchmarks.tokenising                                    ten million letters
    python -m benchmarks.tokenising --letters 1e9 --collection results/collections/msmarco

The peer tokenises the same texts in batches, as `datasets.map(batched=True)` would call it, and
once without Python's part. "End to end" includes everything up to the importance of each
word-piece, with counting.

Target: end to end twice as fast as the Hugging Face tokenizer alone, ids bit-equal.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

from benchmarks import texts
from benchmarks.tables import table
from cdmae.importance import ami, ngrams
from cdmae.tokens import tokenise
from cdmae.tokens.corpus import Tokens


def end_to_end(passages: pa.Table, tokenizer: Path) -> Tokens:
    """Tokenise, count n-grams and compute importance; return the tokens."""
    found = tokenise.tokenise(passages, tokenizer, 1)
    with tempfile.TemporaryDirectory() as folder:
        ngrams.count_to(f"{folder}/ngrams", found)
        ami.estimate(f"{folder}/importance", f"{folder}/ngrams", found, {})
    return found


def timed(function: Callable[[], object], repeats: int = 2) -> tuple[float, object]:
    """Return the least CPU time of all threads in seconds, and the function's result."""
    taken = []
    for _ in range(repeats):
        begun = time.process_time()
        found = function()
        taken.append(time.process_time() - begun)
    return min(taken), found


def main() -> None:
    """Measure every form and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--letters", type=float, default=1e7)
    parser.add_argument("--vocabulary", type=int, default=8192)
    parser.add_argument(
        "--collection", type=Path, help="a folder of results/collections, instead of documentation"
    )
    arguments = parser.parse_args()
    passages = texts.passages(int(arguments.letters), arguments.collection)
    lines = [text for name in ("title", "text") for text in passages[name].to_pylist()]
    with tempfile.TemporaryDirectory() as folder:
        hugging_face = tokenise.train_tokenizer(lines[-4000:], arguments.vocabulary)
        hugging_face.save_pretrained(folder)
        end_to_end(passages.slice(0, 50), Path(folder))  # compiles or loads the kernels

        def peer() -> list[list[int]]:
            batches = [lines[at : at + 1000] for at in range(0, len(lines), 1000)]
            return [
                ids
                for batch in batches
                for ids in hugging_face(batch, add_special_tokens=False)["input_ids"]
            ]

        def bare() -> list[list[int]]:
            found = hugging_face.backend_tokenizer.encode_batch_fast(
                lines, add_special_tokens=False
            )
            return [each.ids for each in found]

        found = {
            "Hugging Face, batches": timed(peer, 1),
            "Hugging Face, without Python's part": timed(bare, 1),
            "ours: word-pieces": timed(lambda: tokenise.tokenise(passages, Path(folder), 1)),
            "ours: end to end, with importance": timed(lambda: end_to_end(passages, Path(folder))),
        }
    expected = found["Hugging Face, batches"][1]
    ours = found["ours: word-pieces"][1]
    pieces = sum(map(len, expected))
    print(f"{len(passages):,} passages, {pieces:,} word-pieces, vocabulary {len(hugging_face):,}\n")
    speed = {name: pieces / seconds for name, (seconds, _) in found.items()}
    peers = list(speed.values())
    rows = [
        {
            "form": name,
            "million word-pieces per cpu-s": f"{each / 1e6:.2f}",
            "of batches": f"{each / peers[0]:.1f} x",
            "of the bare tokenizer": f"{each / peers[1]:.1f} x",
        }
        for name, each in speed.items()
    ]
    print(table(rows))
    titles = expected[: len(passages)]
    bodies = expected[len(passages) :]
    joined = np.fromiter(
        (each for pair in zip(titles, bodies, strict=True) for ids in pair for each in ids),
        np.int64,
    )
    print(f"\nids are bit-equal: {'yes' if np.array_equal(joined, ours.ids) else 'NO'}")


if __name__ == "__main__":
    main()
