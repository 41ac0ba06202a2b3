"""Opening the folder of judgments for ``./run serve --judge``."""

from __future__ import annotations

import getpass
from collections.abc import Iterator
from pathlib import Path

import yaml

from cdmae.collections.store import stream_passages
from cdmae.config.schema import Config
from cdmae.errors import InputError
from cdmae.files import write_text
from cdmae.serving.engine import Engine
from cdmae.serving.judging import DEPTH, SPLIT, Judgments, Passage
from cdmae.serving.judging_page import Judging

JUDGED = "Judged@10"  # the share of a system's best ten passages that have a grade


def judging_of(
    config: Config, engine: Engine, folder: Path, collection: str, queries: list[str]
) -> Judging:
    """Open the folder of judgments, and add queries to it; the user's name goes into the grades."""

    def corpus() -> Iterator[dict[str, str]]:
        for passages in stream_passages(engine.folders[collection]):
            yield from passages.to_pylist()

    def pool(text: str) -> list[Passage]:
        hits = engine.pool(text, collection, DEPTH)
        return [Passage(hit.passage_id, hit.title or hit.summary, hit.text) for hit in hits]

    about = {"collection": collection, "passages": engine.passages(collection)}
    judgments = Judgments(folder, corpus(), pool, list(engine.systems[collection]), about)
    name = f"{collection[:57]}-judged"  # a name has up to 64 letters
    evaluation = {"collections": {name: [SPLIT]}, "measures": [*config.evaluation.measures]}
    if JUDGED not in evaluation["measures"]:
        evaluation["measures"].append(JUDGED)
    if collection in config.evaluation.lengths:
        evaluation["lengths"] = {name: config.evaluation.lengths[collection]}
    source = {"source": "beir", "path": str(folder)}
    overlay = {"collections": {name: source}, "evaluation": evaluation}
    write_text(folder / "evaluation.yaml", yaml.safe_dump(overlay, sort_keys=False))
    for text in queries:
        judgments.add(text)
    try:
        who = getpass.getuser()
    except (KeyError, OSError):
        raise InputError(
            "grades are recorded with a user name, but this user has none; set the environment "
            "variable USER"
        ) from None
    return Judging(judgments, collection, who)
