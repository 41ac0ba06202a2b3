"""Read the records of a run: of its trainings, its collections, and the time of its jobs."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cdmae.collections.store import count_passages, read_qrels, read_queries
from cdmae.config.schema import Config
from cdmae.files import read_json

WORK = re.compile(r"^work ([\d.]+) s$", re.MULTILINE)  # in a job's log, by `cdmae.job`
POINTS = 120  # rows per curve; further steps are averaged
LOSSES = ("encoder_loss", "decoder_loss", "loss")
BOTTLENECK = "bottleneck.tsv"  # of `cdmae.pretraining.probes`
Point = tuple[str, float, float]  # a quantity of a training, the step, and the value


@dataclass(frozen=True)
class Training:
    """The records of a training: its about.json, and its losses and probes by step."""

    about: dict[str, Any] = field(default_factory=dict)
    points: list[Point] = field(default_factory=list)


@dataclass(frozen=True)
class Corpus:
    """The size of a collection: its passages, and the queries and judgments of its splits.

    queries, judged: the number of all and of judged queries by split. per_query: the judgments per
    judged query.
    """

    passages: int
    queries: dict[str, int]
    judged: dict[str, int]
    per_query: dict[str, float]
    about: dict[str, Any]


def corpus(config: Config, folder: Path) -> Corpus:
    """Count a collection's contents in the splits that are used for training or evaluation.

    folder: of the collection, whose name it has.
    """
    name = folder.name
    stages = [stage for stage in config.stages.values() if stage.collection == name]
    measured = config.evaluation.collections.get(name, ())
    splits = dict.fromkeys([*(stage.split for stage in stages), *measured])
    unjudged = {stage.split for stage in stages if stage.labels}
    counts = {}  # of the judgments of each query, by split
    for split in splits.keys() - unjudged:
        counts[split] = read_qrels(folder, split)["query"].value_counts()
    return Corpus(
        passages=count_passages(folder),
        queries={split: len(read_queries(folder, split)) for split in splits},
        judged={split: len(own) for split, own in counts.items()},
        per_query={split: float(own.mean()) for split, own in counts.items() if len(own)},
        about=read_json(folder / "about.json"),
    )


def training(folder: Path) -> Training:
    """Read the records of a training: about.json, its curve and its probes; each may be missing."""
    about = folder / "about.json"
    curve = folder / "steps.tsv"
    points = _losses(pd.read_csv(curve, sep="\t")) if curve.exists() else []
    probes = folder / BOTTLENECK
    if probes.exists():
        probe = pd.read_csv(probes, sep="\t").melt(id_vars="step", var_name="quantity")
        points += zip(probe["quantity"], probe["step"], probe["value"], strict=True)
    return Training(read_json(about) if about.exists() else {}, points)


def _losses(curve: pd.DataFrame) -> list[Point]:
    """List the last step and the mean of at most `POINTS` parts of each loss curve."""
    found = []
    for quantity in [name for name in LOSSES if name in curve]:
        rows = curve[["step", quantity]].dropna().to_numpy(float)
        for part in np.array_split(rows, min(POINTS, len(rows)) or 1):
            if len(part):
                found.append((quantity, part[-1, 0], part[:, 1].mean()))
    return found


def work(log: Path) -> float:
    """Read the seconds of a job's work without the start of its process; nan if not recorded."""
    found = WORK.findall(log.read_text(errors="replace")) if log.is_file() else []
    return float(found[-1]) if found else float("nan")
