"""The files of a finished run for the report: plausible numbers, every part of the page."""

import copy
import html
import re
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd
from made_up import run_of
from small_collections import stored

from cdmae.config.load import load
from cdmae.config.reading import read_yaml
from cdmae.config.schema import Config
from cdmae.config.seeds import replicate
from cdmae.config.systems import targets as targets_of
from cdmae.evaluation.per_query import write_measures
from cdmae.fields import parse
from cdmae.files import write_json
from cdmae.report.facts import Facts
from cdmae.runs import write_run

SKILL = {  # the mean of log rank: smaller is better
    "bm25": 1.9, "none-stage1": 5.1, "mae-stage1": 4.55, "cdmae-stage2": 4.1, "cdmae-stage3": 4.05,
    "cdmae-reranker": 2.9, "fused": 2.3,
}  # fmt: skip
SMALL = {
    "pydocs": {"dev": 150, "test": 120},
    "scikit-learn": {"test": 110},
    "networkx": {"test": 130},
}
CIRCUMSTANCES = {
    "versions": {"python": "3.12.4", "torch": "2.13.0"},
    "machine": {"processor": "Xeon, 2 cores", "memory": "16 GB", "GPU": "none"},
    "started": "2025-06-03 14:12+02:00",
}
MASKED_TERMS = {
    "uniform": {"top": [["the", 0.061], [".", 0.058]], "stop_word_share": 0.538},
    "importance": {"top": [["array", 0.012], ["value", 0.009]], "stop_word_share": 0.274},
}
PASSAGES, DEPTH = 60, 20


@cache
def _default():
    root = Path(__file__).resolve().parent.parent
    return load(read_yaml(root / "config" / "config.yaml")).values()


def config(*systems, **changes):
    """The default config with a single seed, some systems, and changed sections."""
    values = copy.deepcopy(_default()) | {"seed": 42} | changes
    if systems:
        values["systems"] = {name: values["systems"][name] for name in systems}
        values["report"]["compare"] = {}
        values["report"]["methods"] = {}
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


def make(folder, values=None, *, skill=SKILL, targets=SMALL, trained=True, text="text", **more):
    """Write a run into `folder` and return its facts.

    targets: the number of queries of each split. trained: whether trainings have records. text: of
    queries and passages. more: circumstances.
    """
    values = values or config()
    wanted = {name: list(splits) for name, splits in targets.items()}
    evaluation = {**values["evaluation"], "collections": wanted}
    values = {**values, "results": str(folder), "evaluation": evaluation}
    facts = Facts(parse(Config, values), {**CIRCUMSTANCES, **more})
    rng = np.random.default_rng(7)
    _measures(facts, skill, targets, rng)
    for name in targets:
        _collection(facts, name, targets[name], text)
    for name in facts.config.systems:
        _run(facts, name, targets, rng)
    if trained:
        for name, encoder in facts.config.encoders.items():
            about = {"seconds": 188.2} if encoder.pretrained else {}
            losses = {"encoder_loss": 2.6, "decoder_loss": 4.6} if encoder.pretrained else {}
            _training(facts.at("encoder", encoder=name), about, losses, rng)
            if encoder.masked_by_importance:
                write_json(facts.at("masked_terms", encoder=name), MASKED_TERMS)
        for name, system in facts.config.systems.items():
            if system.trained:
                labels = facts.config.stages[system.stage].train_queries or 4000
                counts = {"with random negatives only": 12}
                about = {"seconds": 61.0, "queries": labels, "counts": counts}
                _training(facts.at("trained", system=name), about, {"loss": 0.7}, rng)
    return facts


def _measures(facts, skill, targets, rng):
    hard = {}
    for name, splits in targets.items():
        for split, count in splits.items():
            hard[name, split] = rng.normal(0, 2.2, count)
    replicas = replicate(facts.config).systems
    for name in replicas:
        base = name.partition("@")[0]
        mean = skill.get(base, 4.2) + (rng.normal(0, 0.05) if name != base else 0)
        frames = []
        for collection, split in targets_of(facts.config):
            own = hard[collection, split]
            rank = np.floor(np.exp(mean + own + rng.normal(0, 1.1, len(own)))) + 1
            ids = [f"{split}-{index:05d}" for index in range(len(own))]
            for measure in facts.config.evaluation.measured(collection, split):
                cut = int(measure.rpartition("@")[2])
                gain = 1 / np.log2(1 + rank) if measure[0] == "n" else 1 / rank
                value = np.where(rank <= cut, 1.0 if measure[:2] in ("R@", "R(") else gain, 0.0)
                labels = {"collection": collection, "split": split, "query_id": ids}
                frames.append(pd.DataFrame({**labels, "measure": measure, "value": value}))
        write_measures(facts.at("measures", system=name), pd.concat(frames))


def _collection(facts, name, splits, text):
    """Write a collection whose query with the number q has the relevant passage q % `PASSAGES`."""
    if name in [stage.collection for stage in facts.config.stages.values()]:
        splits = {"train": 200, **splits}
    queries = {}
    judged = {}
    for split, count in splits.items():
        ids = [f"{split}-{index:05d}" for index in range(count)]
        queries[split] = {id_: f"{text} {id_}" for id_ in ids}
        judged[split] = [(id_, f"p{index % PASSAGES}", 1) for index, id_ in enumerate(ids)]
    passages = [(f"p{index}", "", f"{text} p{index}") for index in range(PASSAGES)]
    folder = facts.at("collection", collection=name)
    stored(folder, passages, queries, judged, about={"versions": {"numpy": "2.4.6"}})


def _run(facts, name, targets, rng):
    """Write a run over the first split, and the log of its search."""
    collection, splits = next(iter(targets.items()))
    split, count = next(iter(splits.items()))
    ranked = [rng.permutation(PASSAGES)[:DEPTH] for _ in range(count)]
    write_run(facts.at("run", system=name, collection=collection, split=split), run_of(*ranked))
    log = facts.at("logs") / f"search/{name}.evaluated.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    log.write_text("a line\nwork 2.000 s\n" if "stage" in name else "no work\n")


def _training(folder, about, losses, rng):
    write_json(folder / "about.json", about)
    steps = np.arange(10, 3601, 10)
    curve = {"step": steps}
    for name, floor in losses.items():
        curve[name] = floor + 5 * np.exp(-steps / 900) + rng.normal(0, 0.1, len(steps))
    if losses:
        pd.DataFrame(curve).to_csv(folder / "steps.tsv", sep="\t", index=False)


def tables_of(page):
    """The tables of a page as frames of texts, by their captions."""
    found = {}
    for body in re.findall(r"<table.*?</table>", page, re.DOTALL):
        caption = plain(re.search(r"<caption>(.*?)</caption>", body, re.DOTALL)[1])
        rows = []
        for line in re.findall(r"<tr>(.*?)</tr>", body, re.DOTALL):
            cells = re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", line, re.DOTALL)
            rows.append([plain(cell) for cell in cells])
        found[caption] = pd.DataFrame(rows[1:], columns=rows[0])
    return found


def mean(run, system, target, measure="RR@10"):
    """The mean of a system of some facts over queries and seeds."""
    return run.values[system, target, measure].mean(axis=None)


def plain(text):
    """The words of some HTML, with simple spaces."""
    return " ".join(html.unescape(re.sub("<[^>]+>", "", text)).split())
