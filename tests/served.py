"""An engine with fixed scores instead of systems, and a process that serves it."""

import os
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from small_collections import stored

from cdmae.retrieval import asking
from cdmae.runs import Run
from cdmae.serving import server
from cdmae.serving.engine import Engine
from cdmae.serving.judging import Judgments, Passage

HOSTILE = '<script>alert(1)</script>" onload="x'
TEXTS = ["merge two lists", HOSTILE, "parse:\n\n    a date", "read a file"]
SCORES = {"words": [3, 2, 1, 0], "vectors": [0, 1, 2, 3]}


class Systems:
    """Systems with fixed scores, in place of the modules of `cdmae.retrieval`."""

    @staticmethod
    def answer(system, question):
        if question.parts:
            scores = sum(np.bincount(part.passages, part.scores, 4) for part in question.parts)
        else:
            scores = np.asarray(SCORES[system["name"]])
        best = np.argsort(-scores, kind="stable")[: question.depth]
        return Run.of([best.astype(np.int32)], [scores[best].astype(np.float32)])


def engine_of(folder):
    """Make the engine; its collection is written into a folder."""
    titles = ["Lists", "", "", "Files"]
    passages = [(f"p{row}", title, TEXTS[row]) for row, title in enumerate(titles)]
    stored(folder / "docs", passages, {"test": {"q": "a query"}})
    parts = [{"name": name, "parts": [], "answered_by": ""} for name in SCORES]
    both = {"name": "both", "parts": parts, "answered_by": ""}
    systems = {system["name"]: system for system in [*parts, both]}
    return Engine({"docs": systems}, {"docs": folder / "docs"}, depth=3, lengths={})


def judgments_of(engine, folder):
    """Open the judgments in a folder; each system's best two passages are pooled."""

    def pool(text):
        hits = engine.pool(text, "docs", list(engine.systems["docs"]), 2)
        return [Passage(hit.passage_id, hit.title, hit.text) for hit in hits]

    about = {"collection": "docs", "passages": len(TEXTS), "who": "me"}
    return Judgments(folder, pool, list(SCORES), **about)


def app_of(engine, **options):
    """Make the application."""
    return server.make(engine, title="Test", best="words", threads=1, **options)


@contextmanager
def serving(folder):
    """Run `main` in a process of its own; yield the process and its port."""
    here = Path(__file__).resolve()
    process = subprocess.Popen(
        [sys.executable, here, folder],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(map(str, here.parents[:2]))},
    )
    try:
        yield process, int(process.stdout.readline())
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def main(folder):
    """Serve in this process; print the port."""
    asking._module = lambda name: Systems
    engine = engine_of(folder)
    engine.warm()
    app = app_of(engine, judging=judgments_of(engine, folder / "judged"))
    bound = server.listen(0)
    print(bound.getsockname()[1], flush=True)
    server.run(app, bound)
    print("ended", flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
