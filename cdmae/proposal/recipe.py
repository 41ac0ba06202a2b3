"""Choose a recipe for a survey and a machine, and write it as a config of at most 40 lines."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import jinja2
import yaml

from cdmae.collections.leakage import DIVIDED
from cdmae.config.splits import is_dev
from cdmae.errors import InputError
from cdmae.formats import plural
from cdmae.plan.machine import Machine
from cdmae.proposal.encoders import Encoder
from cdmae.proposal.survey import METHODS, Survey, some

MOST_HELD_OUT = 2000  # queries of a new split
LEAST_QUERIES = 20  # that can be trained on


@dataclass(frozen=True)
class Recipe:
    """The values that the config's template needs, by name, and the reasons to print."""

    values: dict[str, Any]
    reasons: list[str]


def choose(found: Survey, machine: Machine, encoder: Encoder | None, name: str) -> Recipe:
    """Choose a value for every name in the template."""
    labelled = found.judged.get(DIVIDED, 0) >= LEAST_QUERIES
    reasons = []
    settings = dict(found.settings)
    values: dict[str, Any] = {
        "found": found,
        "name": name,
        "labelled": labelled,
        "encoder": encoder,
        "sparse": encoder is not None and encoder.head == "sparse",
        "similarity": encoder.similarity if encoder else "cosine",
        "collection": "mine" if labelled else "made",
        "judged": [split for split in found.judged if split != DIVIDED],
    }
    if labelled:
        trained, dev, holdout = _splits(found)
        if holdout:
            settings["holdout"] = holdout
            shares = ", ".join(f"{split} {share:.0%}" for split, share in holdout.items())
            reasons.append(f"held out of train, with everything that shares a passage: {shares}")
    else:
        method = _method(found)
        made = round(found.made[method] * found.passages)
        share = _share(made)
        if not round(made * share):
            raise InputError(
                f"{plural(made, 'query')} can be made from the passages in {settings['path']}, too "
                "few to train on and to measure with; add texts, or give a table of pairs"
            )
        trained = round(made * (1 - 2 * share))
        # judged queries choose the weights, if some are for choosing
        dev = next((f"mine, {split}" for split in values["judged"] if is_dev(split)), "dev")
        values |= {"method": method, "share": share}
        reasons.append(f"queries are made from the text ({method}): about {made:,}")
        if DIVIDED in found.judged:
            reasons.append(f"fewer than {LEAST_QUERIES} queries in {DIVIDED}: not used")
    on_gpu = bool(machine.gpus)
    queries = min(64 if on_gpu else 32, max(2, 2 ** int(math.log2(max(1, trained / 8)))))
    depth = max(2, min(100, found.passages // 4))
    longest = min(encoder.positions if encoder else 256, 512 if on_gpu else 256)
    passage_length = _length(found.pieces[0], longest)
    steps = max(1, trained) / queries  # tiny data may hold out every query
    # a head over 30,000 word-pieces is most of the work
    most = 20_000 if on_gpu else 500 if encoder else 2000
    values |= {
        "source": {"source": found.source, **settings},
        "dev": dev,
        "queries": queries,
        "depth": depth,
        "group": min(8 if on_gpu else 4, depth),
        "query_length": min(_length(found.pieces[1] or 16, 64), longest),
        "passage_length": passage_length,
        "epochs": max(1, min(4 if encoder else 16, math.ceil((100 if encoder else 400) / steps))),
        "pretraining_length": min(passage_length, 144 if on_gpu else 64),
        # 20 epochs, within limits
        "steps": max(200, min(most, round(20 * found.passages / 32))),
    }
    if passage_length < found.pieces[0]:
        words = f"passages are cut at {passage_length} word-pieces: {longest} is the most"
        reasons.append(f"{words} for {'this encoder' if on_gpu else 'this machine'}")
    return Recipe(values, reasons)


def _splits(found: Survey) -> tuple[int, str, dict[str, float]]:
    """Choose the training queries, the split for tuning, and the shares of queries to hold out."""
    queries = found.judged[DIVIDED]
    share = _share(queries)
    has_dev = next(filter(is_dev, found.judged), "")
    holdout = {} if has_dev else {"dev": share}
    if not set(found.judged) - {DIVIDED, has_dev}:
        holdout["test"] = share
    # a split without judgments keeps its name
    holdout = {split: part for split, part in holdout.items() if split not in found.unjudged}
    return round(queries * (1 - sum(holdout.values()))), has_dev or "dev", holdout


def _share(queries: int) -> float:
    """Compute the share of the queries that moves into each new split."""
    return float(f"{min(0.1, MOST_HELD_OUT / max(1, queries)):.2g}")


def _method(found: Survey) -> str:
    """Choose the first method that makes at least half as many queries as the best method."""
    best = max(found.made.values())
    return next(method for method in METHODS if found.made[method] >= best / 2)


def _length(pieces: int, most: int) -> int:
    """Round a length and two special word-pieces up to a multiple of 16, at most `most`."""
    return min(most, max(16, 16 * math.ceil((pieces + 2) / 16)))


def text(recipe: Recipe, root: Path) -> str:
    """Format the config; paths below `root`, the working directory of runs, become relative."""
    environment = jinja2.Environment(
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # noqa: S701 (YAML, not HTML)
    )
    environment.filters["flow"] = _flow
    values = _relative(recipe.values, root)
    template = Path(__file__).with_name("my.yaml.j2").read_text(encoding="utf-8")
    return environment.from_string(template).render(values)


def _relative(values: dict[str, Any], root: Path) -> dict[str, Any]:
    """Make the paths of the collection and the encoder relative if they are below `root`."""

    def short(path: str) -> str:
        return str(Path(path).relative_to(root)) if Path(path).is_relative_to(root) else path

    source = values["source"]
    paths: dict[str, Any] = {key: short(source[key]) for key in ("path", "corpus") if key in source}
    if "questions" in source:
        paths["questions"] = {split: short(path) for split, path in source["questions"].items()}
    encoder = values["encoder"]
    if encoder:
        encoder = replace(encoder, model=short(encoder.model))
    return {**values, "source": source | paths, "encoder": encoder}


def _flow(value: Any) -> str:
    """Format a value as YAML on one line."""
    # as an item of a list, a text with a comma or bracket gets quotation marks
    line = yaml.safe_dump(
        [value], default_flow_style=True, sort_keys=False, allow_unicode=True, width=10**6
    )
    return line.strip()[1:-1]


# --- what is printed ------------------------------------------------------------------------------


def description(found: Survey) -> list[str]:
    """Describe the data in the folder, one line per property."""
    splits = [f"{split} {count:,}" for split, count in found.judged.items()]
    splits += [f"{split} without judgments" for split in found.unjudged]
    queries = f", of queries up to {found.words[1]:,}" if found.words[1] else ""
    lines = [
        f"{found.source}: {plural(found.passages, 'passage')}",
        f"queries  {', '.join(splits) or 'none'}",
        f"length   95 % of passages up to {found.words[0]:,} words{queries}",
    ]
    if found.unread:
        lines.append(f"ignored  {some(found.unread)}")
    return lines
