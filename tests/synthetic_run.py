"""What a finished run leaves for the report, made up: plausible numbers, every part of the page, no
training.
"""

import copy
import html
import math
import re
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

from cdmae.collections.store import Collection, write_collection
from cdmae.config.load import load
from cdmae.config.reading import read_yaml
from cdmae.config.schema import Evaluation
from cdmae.evaluation.per_query import write_measures
from cdmae.fields import parse
from cdmae.files import write_json

MEASURES = ["RR@10", "R@50", "R@1000", "nDCG@10"]
SKILL = {  # the mean of log rank: smaller is better
    "bm25": 1.9, "none-stage1": 5.1, "mae-stage1": 4.55, "cdmae-stage1": 4.2, "cdmae-stage2": 4.1, "cdmae-stage3": 4.05,
    "cdmae-reranker": 2.9, "fused": 2.3,
}  # fmt: skip
TARGETS = {
    "pydocs": {"dev": 1450, "test": 1462},
    "scikit-learn": {"test": 1618},
    "networkx": {"test": 1220},
}
SMALL = {
    "pydocs": {"dev": 150, "test": 120},
    "scikit-learn": {"test": 110},
    "networkx": {"test": 130},
}
EXAMPLE = [
    "hokey",
    "stuff",
    "is",
    "a",
    "crossword",
    "puzzle",
    "clue",
    "that",
    "we",
    "have",
    "spotted",
    "4",
    "times",
]


@cache
def _default():
    return load(
        read_yaml(Path(__file__).resolve().parent.parent / "config" / "config.yaml")
    ).values()


def config():
    """The resolved config of such a run: the default one with a single seed."""
    return copy.deepcopy(_default()) | {"seed": 42}


def objectives(seeds=(42, 43, 44)):
    """The config of a run that ranks encoders after stage 1."""
    values = config() | {"seed": list(seeds)}
    for name in ("retromae", "dupmae", "simlm"):
        values["encoders"][name] = {**values["encoders"]["mae"], "objective": name}
        values["systems"][f"{name}-stage1"] = {**values["systems"]["mae-stage1"], "encoder": name}
    return values


def with_system(config, name, encoder=None, stage=None, **changes):
    """Add a system like cdmae-stage1 with an encoder or a stage of its own."""
    system = {**config["systems"]["cdmae-stage1"], **changes}
    if encoder:
        config["encoders"][name] = {**config["encoders"]["cdmae"], **encoder}
        system["encoder"] = name
    if stage:
        config["stages"][name] = {**config["stages"]["stage1"], **stage}
        system["stage"] = name
    config["systems"][name] = system
    config["report"]["compare"][name] = ["cdmae-stage1"]
    return config


def tables_of(page):
    """The tables of a page as frames of texts, by their captions."""
    found = {}
    for body in re.findall(r"<table.*?</table>", page, re.DOTALL):
        caption = plain(re.search(r"<caption>(.*?)</caption>", body, re.DOTALL)[1])
        lines = re.findall(r"<tr>(.*?)</tr>", body, re.DOTALL)
        rows = [
            [plain(cell) for cell in re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", line, re.DOTALL)]
            for line in lines
        ]
        found[caption] = pd.DataFrame(rows[1:], columns=rows[0])
    return found


def mean(run, system, target, measure="RR@10"):
    """The mean of a system of some facts over queries and seeds."""
    return run.values[system, target, measure].mean(axis=None)


def plain(text):
    """The words of some HTML."""
    return " ".join(html.unescape(re.sub("<[^>]+>", "", text)).split())


def make(
    folder,
    values=None,
    *,
    skill=None,
    targets=TARGETS,
    parts=("trained", "masked_terms", "benchmarks"),
):
    """Write a run into `folder` and return the path of its facts file."""
    folder, values = Path(folder), values or config()
    wanted = {name: list(splits) for name, splits in targets.items()}
    values = {**values, "evaluation": {**values["evaluation"], "collections": wanted}}
    rng = np.random.default_rng(7)
    skill = {name: (skill or SKILL).get(name, 4.2) for name in values["systems"]}
    learnt = [(name, mean) for name, mean in skill.items() if name != "bm25"]
    seeds = values["seed"]
    for seed in seeds[1:] if isinstance(seeds, list) else ():
        skill |= {f"{name}@{seed}": mean + rng.normal(0, 0.05) for name, mean in learnt}
    facts = {
        "config": values,
        "measures": _measures(folder, skill, targets, parse(Evaluation, values["evaluation"]), rng),
        "versions": {"python": "3.12.4", "torch": "2.13.0"},
        "machine": {
            "system": "Linux x86_64",
            "processor": "Xeon, 2 cores",
            "memory": "16 GB",
            "GPU": "none",
        },
        "started": "2025-06-03 14:12+02:00",
        "collections": {
            name: _collection(folder / "collections" / name, name, targets[name])
            for name in targets
        },
        "benchmarks": str(folder / "benchmarks"),
        **roles(targets),
        **{kind: {} for kind in ("encoders", "trained", "masked_terms", "importance")},
    }
    if "trained" in parts:
        for name, entry in values["encoders"].items():
            facts["encoders"][name] = _encoder(folder / "encoders" / name, entry, rng)
        for name, entry in values["systems"].items():
            if entry["kind"] in ("retriever", "reranker"):
                facts["trained"][name] = _trained(folder / "trained" / name, entry, rng)
    if "masked_terms" in parts:
        write_json(folder / "masked_terms" / "cdmae.json", masked_terms())
        facts["masked_terms"]["cdmae"] = str(folder / "masked_terms" / "cdmae.json")
    if "benchmarks" in parts:
        _benchmarks(folder / "benchmarks", values)
        facts["logs"] = str(folder / "logs")
    write_json(folder / "facts.json", facts)
    return folder / "facts.json"


def roles(targets):
    """The split that decides and the one that is reported, of the first collection."""
    collection, splits = next(iter(targets.items()))
    split = "test" if "test" in splits else next(iter(splits))
    return {"deciding": [collection, next(iter(splits))], "reported": [collection, split]}


def masked_terms():
    """As ``cdmae.masking.terms.describe`` gives it."""
    shares = [0.061, 0.058, 0.039, 0.031, 0.027, 0.025, 0.019, 0.014, 0.013, 0.011]
    terms = ["the", ".", ",", "a", "of", "to", "is", "in", "and", "for"]
    uniform = [list(pair) for pair in zip(terms, shares, strict=True)]
    terms = [
        "array",
        "value",
        "return",
        "default",
        "object",
        "matrix",
        "function",
        "none",
        "deprecated",
        "boolean",
    ]
    shares = [0.012, 0.009, 0.008, 0.008, 0.007, 0.006, 0.006, 0.005, 0.005, 0.004]
    aware = [list(pair) for pair in zip(terms, shares, strict=True)]
    importance = [8.1, 13.9, -1.2, 0.4, 19.7, 21.3, 20.2, 0.1, 1.1, -0.3, 15.8, 14.9, 7.7]
    return {
        "uniform": {"top": uniform, "stop_word_share": 0.538},
        "importance": {"top": aware, "stop_word_share": 0.274},
        "example": {
            "words": list(EXAMPLE),
            "importance": importance,
        },
    }  # fmt: skip


def _measures(folder, skill, targets, evaluation, rng):
    frames = {name: [] for name in skill}
    for collection, splits in targets.items():
        shift = 0.0 if collection == next(iter(targets)) else 0.6
        for split, count in splits.items():
            hard = rng.normal(0, 2.2, count)
            ids = [f"{split}-{index:05d}" for index in range(count)]
            for name, mean in skill.items():
                rank = (
                    np.floor(
                        np.exp(mean + shift * (name != "bm25") + hard + rng.normal(0, 1.1, count))
                    )
                    + 1
                )
                values = {
                    "RR@10": np.where(rank <= 10, 1 / rank, 0),
                    "nDCG@10": np.where(rank <= 10, 1 / np.log2(1 + rank), 0),
                }
                values |= {f"R@{cut}": (rank <= cut).astype(float) for cut in (50, 1000)}
                for measure, named in zip(
                    MEASURES, evaluation.measured(collection, split), strict=True
                ):
                    columns = {
                        "collection": collection,
                        "split": split,
                        "query_id": ids,
                        "measure": named,
                    }
                    frames[name].append(pd.DataFrame({**columns, "value": values[measure]}))
    for name, parts in frames.items():
        write_measures(folder / "measures" / f"{name}.tsv", pd.concat(parts))
    return {name: str(folder / "measures" / f"{name}.tsv") for name in skill}


def _collection(folder, name, splits):
    splits = {"train": 4000, **splits} if name in ("pydocs", "msmarco") else splits
    queries = {
        split: pd.DataFrame({"query_id": [f"{split}-{i:05d}" for i in range(n)], "text": "how"})
        for split, n in splits.items()
    }
    qrels = {
        split: frame[["query_id"]].assign(
            passage_id=[f"p{i % 500}" for i in range(len(frame))], grade=1
        )
        for split, frame in queries.items()
    }
    ids = [f"p{index}" for index in range(2014 if name == "pydocs" else 500)]
    passages = pa.table({"passage_id": ids, "title": [""] * len(ids), "text": ["text"] * len(ids)})
    about = {
        "versions": {"python": "3.12.4", "numpy": "2.4.6", "scipy": "1.17.1", "torch": "2.13.0"},
        "counts": {"objects": 61240, "with a summary and a body": 24105},
        "drops": {"near-duplicates": 2710, "templated summaries": 1181},
    }
    write_collection(folder, Collection(passages, queries, qrels, about))
    return str(folder)


def _encoder(folder, entry, rng):
    if entry["objective"] == "none":
        return _training(folder, {"parameters": 4_402_688})
    steps = np.arange(10, 6001, 10)
    floor = 4.6 if entry.get("decoder_masking") == "importance" else 3.2
    curve = {
        "step": steps,
        "encoder_loss": 2.6 + 5.6 * np.exp(-steps / 900) + rng.normal(0, 0.08, len(steps)),
        "decoder_loss": floor
        + (8.3 - floor) * np.exp(-steps / 1400)
        + rng.normal(0, 0.06, len(steps)),
        "learning_rate": 1e-3,
    }
    return _training(folder, {"parameters": 4_402_688, "steps": 6000, "seconds": 188.2}, curve)


def _trained(folder, entry, rng):
    steps = np.arange(1, 376)
    start = {"none": 3.1, "mae": 2.6}.get(entry["encoder"], 2.4)
    loss = 0.7 + start * np.exp(-steps / 110) + rng.normal(0, 0.12, len(steps))
    return _training(folder, {"steps": 375, "seconds": 61.0}, {"step": steps, "loss": loss})


def _training(folder, about, curve=None):
    folder.mkdir(parents=True)
    write_json(folder / "about.json", about)
    if curve:
        pd.DataFrame(curve).to_csv(folder / "steps.tsv", sep="\t", index=False)
    return str(folder)


def _benchmarks(folder, values):
    jobs = {
        "collection/pydocs": (61, 640), "tokenizer/tiny": (4.1, 310), "tokens/tiny/pydocs": (2.2, 240),
        "importance/ami/tiny/pydocs": (1.4, 260),
        "masked_terms/cdmae": (5.2, 380), "bm25/bm25.evaluated": (21, 1100),
        "bm25/bm25.pydocs.train": (19, 1000), "train/cdmae-reranker": (88, 2100),
        "teacher/cdmae-stage3": (40, 900), "measures/bm25": (0.4, math.nan),
    }  # fmt: skip
    jobs |= {f"pretrain/{name}": (190, 1210) for name in values["encoders"] if name != "none"}
    jobs |= {"pretrain/none": (3.2, 1210)}
    retrievers = [name for name, entry in values["systems"].items() if entry["kind"] == "retriever"]
    costs = {"train/{}": (61, 1830), "search/{}.evaluated": (6, 650)}
    jobs |= {job.format(name): cost for name in retrievers for job, cost in costs.items()}
    for name, (seconds, memory) in jobs.items():
        path = folder / f"{name}.tsv"
        path.parent.mkdir(parents=True, exist_ok=True)
        row = pd.DataFrame(
            {"s": [seconds], "h:m:s": "0:00:00", "max_rss": memory, "cpu_time": 0.9 * seconds}
        )
        row.to_csv(path, sep="\t", index=False, na_rep="-")
        if name.startswith("search/"):
            log = folder.parent / "logs" / f"{name}.log"
            log.parent.mkdir(parents=True, exist_ok=True)
            log.write_text("said something\nwork 2.000 s\n")
