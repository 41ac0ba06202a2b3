"""Measure the memory of jobs that read a whole collection, which is synthetic, of any size.

    python -m benchmarks.memory                                 100,000 passages, two minutes
    python -m benchmarks.memory --passages 1000000
    python -m benchmarks.memory --checkout ../older             the jobs of another checkout

Each function of the workflow's jobs runs as a process with one thread. Own memory excludes mapped
files: the system takes their pages back when memory is scarce. To see which memory grows with the
collection, compare two sizes.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks import processes, zipf
from benchmarks.calling import command
from benchmarks.tables import table

ROOT = Path(__file__).resolve().parent.parent
START = {"collection": "made-up", "vocabulary": 30522}
COUNTING = {"window": 4, "unit": "word", "pmi": "min", "normaliser": "order", "edges": "literal"}
TAKE = """
import sys, numpy
from cdmae.collections.store import take_passages
take_passages(sys.argv[1], numpy.linspace(0, {}, 60))
"""
NOTHING = "import cdmae.tokens.tokenise, cdmae.retrieval.bm25, cdmae.importance.ami"


def jobs(folder: Path, passages: int, queries: int, model: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield each job's name and arguments; later jobs read the output of earlier ones."""
    docs = folder / "docs"
    tokens, ngrams, run = folder / "tokens", folder / "ngrams", folder / "bm25.parquet"
    scripts = "workflow.scripts"
    given: dict[str, dict[str, Any]] = {
        f"{scripts}.tokenizer:main": {
            "settings": START,
            "prompted": {},
            "collection": docs,
            "output": folder / "tokenizer",
        },
        f"{scripts}.tokens:main": {
            "tokenizer": folder / "tokenizer",
            "collection": docs,
            "output": tokens,
        },
        f"{scripts}.ngrams:main": {"tokens": tokens, "settings": COUNTING, "output": ngrams},
        f"{scripts}.importance:main": {
            "ngrams": ngrams,
            "tokens": tokens,
            "settings": COUNTING,
            "output": folder / "importance",
        },
        "cdmae.retrieval.bm25:build": {"collection": docs, "folder": folder / "index"},
        "cdmae.retrieval.lexical:search": {
            "indexes": [folder / "index"],
            "collections": [docs],
            "splits": ["dev"],
            "outputs": [run],
            "depth": 1000,
            "k1": 0.9,
            "b": 0.4,
        },
        "cdmae.retrieval.external:encode_passages": {
            "model": str(model),
            "collection": docs,
            "output": folder / "vectors",
            "length": 8,
        },
    }
    yield "imports alone", [sys.executable, "-c", NOTHING]
    for name, values in given.items():
        yield name, command(name, **values)
    take = [sys.executable, "-c", TAKE.format(passages - 1), str(docs)]
    yield "60 passages, as the report shows", take


def small_model(folder: Path) -> Path:
    """Make a narrow sentence-transformers model: the benchmark measures how passages reach it."""
    code = (
        "import sys; from transformers import BertConfig, BertModel, BertTokenizer\n"
        "from sentence_transformers import SentenceTransformer\n"
        "names = ['[PAD]', '[UNK]', '[CLS]', '[SEP]', '[MASK]', 'ba', 'be', '##ba', '##be']\n"
        "BertTokenizer(vocab=dict(zip(names, range(9)))).save_pretrained(sys.argv[1])\n"
        "size = dict(hidden_size=8, num_hidden_layers=1, num_attention_heads=1, "
        "intermediate_size=8)\n"
        "config = BertConfig(vocab_size=9, max_position_embeddings=16, **size)\n"
        "BertModel(config).save_pretrained(sys.argv[1])\n"
        "SentenceTransformer(sys.argv[1], device='cpu').save(sys.argv[2])\n"
    )
    subprocess.run(
        [sys.executable, "-c", code, folder / "bare", folder / "model"],
        check=True,
        capture_output=True,
    )
    return folder / "model"


def main() -> None:
    """Measure the memory of every job, and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--passages", type=int, default=100_000)
    parser.add_argument("--queries", type=int, default=1000)
    parser.add_argument(
        "--checkout", type=Path, default=ROOT, help="whose scripts are run; this one without"
    )
    parser.add_argument(
        "--folder", type=Path, help="where there is room for the results, which are removed"
    )
    given = parser.parse_args()
    environment = {**os.environ, "PYTHONPATH": str(given.checkout.resolve()), "TQDM_DISABLE": "1"}
    rows = []
    with tempfile.TemporaryDirectory(dir=given.folder) as name:
        folder = Path(name)
        zipf.write_collection(folder / "docs", given.passages, given.queries)
        text = (folder / "docs" / "passages.parquet").stat().st_size
        for job, words in jobs(folder, given.passages, given.queries, small_model(folder)):
            taken = processes.measure(
                words,
                cwd=given.checkout,
                env=environment,
                stderr=subprocess.DEVNULL,
            )
            rows.append(
                {
                    "job": job,
                    "seconds": f"{taken.seconds:.1f}",
                    "cpu-s": f"{taken.cpu:.1f}",
                    "peak MB": f"{taken.memory / 1e6:.0f}",
                    "own MB": f"{taken.own / 1e6:.0f}",
                }
            )
            print(rows[-1], file=sys.stderr, flush=True)
    print(f"{given.passages:,} passages, {text / 1e6:.0f} MB of Parquet\n{table(rows)}")


if __name__ == "__main__":
    main()
