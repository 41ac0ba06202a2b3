"""Read the records of a run: of its trainings, its collections, and the costs of its jobs."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd

from cdmae.collections.store import count_passages, read_qrels, read_queries
from cdmae.evaluation.per_query import read_table
from cdmae.files import read_json

# seconds; seconds of its work alone, without the start; seconds of a processor; MB
BENCHMARK = ["rule", "job", "seconds", "work", "cpu", "memory"]
WORK = re.compile(r"^work ([\d.]+) s$", re.MULTILINE)  # in a job's log, by `cdmae.job`


@dataclass(frozen=True)
class Training:
    """The records of a training: its loss curve, its about.json, and its probes.

    curve: a frame with `step` and losses, or None. bottleneck: the decoder's losses with three
    vectors at some steps, or None; retrieval: how well halves of passages find each other at these
    steps, or None (`cdmae.pretraining.probes`).
    """

    curve: pd.DataFrame | None = None
    about: dict[str, Any] = field(default_factory=dict)
    bottleneck: pd.DataFrame | None = None
    retrieval: pd.DataFrame | None = None

    @property
    def steps(self) -> int:
        """Return the number of training steps; 0 if it is not recorded."""
        return int(self.about.get("steps", 0))


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
    stages = [
        stage for stage in (config.get("stages") or {}).values() if stage.get("collection") == name
    ]
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


def training(folder: Path | str) -> Training:
    """Read the records of a training: about.json, its curve and its probes; each may be missing."""
    about = Path(folder, "about.json")
    return Training(
        curve=_table(Path(folder, "steps.tsv"), gaps=True),
        about=read_json(about) if about.exists() else {},
        bottleneck=_table(Path(folder, "bottleneck.tsv"), gaps=False),
        retrieval=_table(Path(folder, "retrieval.tsv"), gaps=False),
    )


def _table(path: Path, *, gaps: bool) -> pd.DataFrame | None:
    """Read a table from a file; None if the file does not exist."""
    return read_table(path, gaps=gaps) if path.exists() else None


def benchmarks(folder: str | None, logs: str | None) -> pd.DataFrame:
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
