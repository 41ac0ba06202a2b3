"""Read the records of a run: of its trainings, its collections, and the costs of its jobs."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cdmae.collections.store import count_passages, read_qrels, read_queries
from cdmae.evaluation.per_query import read_table
from cdmae.files import read_json

# seconds; seconds of its work alone, without the start; seconds of a processor; MB
BENCHMARK = ["rule", "job", "seconds", "work", "cpu", "memory"]
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
    """The size of a collection: passages; by split, its queries, judged queries and judgments."""

    passages: int
    queries: dict[str, int]
    judged: dict[str, int]
    judgments: dict[str, int]
    about: dict[str, Any]

    def per_query(self, split: str) -> float:
        """Compute the judgments per judged query; 0 without judgments."""
        return self.judgments.get(split, 0) / max(self.judged.get(split, 0), 1)


def corpus(config: dict[str, Any], name: str, folder: str) -> Corpus:
    """Count a collection's contents in the splits that are used for training or evaluation."""
    stages = (config.get("stages") or {}).values()
    stages = [stage for stage in stages if stage.get("collection") == name]
    measured = config.get("evaluation", {}).get("collections", {}).get(name, [])
    splits = dict.fromkeys([*(stage.get("split", "train") for stage in stages), *measured])
    unjudged = {stage["split"] for stage in stages if stage.get("labels")}
    qrels = {split: read_qrels(folder, split)["query"] for split in splits if split not in unjudged}
    return Corpus(
        passages=count_passages(folder),
        queries={split: len(read_queries(folder, split)) for split in splits},
        judged={split: rows.nunique() for split, rows in qrels.items()},
        judgments={split: len(rows) for split, rows in qrels.items()},
        about=read_json(Path(folder, "about.json")),
    )


def training(folder: str) -> Training:
    """Read the records of a training: about.json, its curve and its probes; each may be missing."""
    about = Path(folder, "about.json")
    curve = Path(folder, "steps.tsv")
    points = _losses(read_table(curve)) if curve.exists() else []
    path = Path(folder, BOTTLENECK)
    if path.exists():
        probe = read_table(path, gaps=False).melt(id_vars="step", var_name="quantity")
        points += zip(probe["quantity"], probe["step"], probe["value"], strict=True)
    return Training(read_json(about) if about.exists() else {}, points)


def _losses(curve: pd.DataFrame) -> list[Point]:
    """List the last step and the mean of at most `POINTS` parts of each loss curve."""
    found = []
    for quantity in [name for name in LOSSES if name in curve]:
        columns = curve[["step", quantity]].apply(pd.to_numeric, errors="coerce")
        rows = columns.dropna().to_numpy(float)
        for part in np.array_split(rows, min(POINTS, len(rows)) or 1):
            if len(part):
                found.append((quantity, part[-1, 0], part[:, 1].mean()))
    return found


def benchmarks(folder: str, logs: str) -> pd.DataFrame:
    """Read Snakemake's benchmark files: a frame with the columns `BENCHMARK`, nan where unknown."""
    rows = []
    for path in sorted(Path(folder).rglob("*.tsv")) if folder else []:
        place = path.relative_to(folder).with_suffix("")
        rule, *job = place.parts
        frame = read_table(path).rename(columns=str.strip)
        if frame.empty or "s" not in frame or rule == "report":
            continue
        last = pd.to_numeric(frame.iloc[-1].reindex(["s", "cpu_time", "max_rss"]), errors="coerce")
        log = Path(logs or "", f"{place}.log")
        work = WORK.findall(log.read_text(errors="replace")) if logs and log.is_file() else []
        seconds, cpu, memory = last.astype(float)
        worked = float(work[-1]) if work else float("nan")
        rows.append((rule, "/".join(job) or rule, seconds, worked, cpu, memory))
    return pd.DataFrame(rows, columns=BENCHMARK)
