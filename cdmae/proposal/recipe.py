"""Choose a recipe for a survey and a machine, and write it as a config of at most 40 lines."""

from __future__ import annotations

import math
import re
from pathlib import Path
from typing import Any

import jinja2
import yaml

from cdmae.collections.leakage import DIVIDED
from cdmae.config.splits import is_dev
from cdmae.errors import InputError
from cdmae.fields import show
from cdmae.formats import listed, plural
from cdmae.languages.scripts import WORDS
from cdmae.plan.machine import Machine
from cdmae.proposal.encoders import Encoder
from cdmae.proposal.survey import METHODS, Survey

MOST_HELD_OUT = 2000  # queries of a new split
LEAST_QUERIES = 20  # that can be trained on
FEW_QUERIES = 100  # fewer train little, and their held-out tenth measures almost nothing
VOCABULARY = 8192  # word-pieces of a tokenizer that is trained


def choose(
    found: Survey, machine: Machine, encoder: Encoder | None, name: str, pieces: tuple[int, int]
) -> tuple[dict[str, Any], list[str]]:
    """Choose a value for every name in the template; return the values, and reasons to print.

    pieces: the longest usual lengths of passages and queries, in word-pieces.
    """
    reasons = []
    settings = _source(found)
    is_labelled = found.judged.get(DIVIDED, 0) >= LEAST_QUERIES
    judged = [split for split in found.judged if split != DIVIDED]
    values: dict[str, Any] = {
        "found": found,
        "name": name,
        "encoder": encoder,
        "sparse": encoder is not None and encoder.head == "sparse",
        "made": not is_labelled,
        "judged": judged,
        "pieces": pieces,
    }
    if is_labelled:
        queries = found.judged[DIVIDED]
        values["dev"], holdout = _splits(found)
        trained = round(queries * (1 - sum(holdout.values())))
        if holdout:
            settings["holdout"] = holdout
            shares = ", ".join(f"{split} {share:.0%}" for split, share in holdout.items())
            reasons.append(f"held out of train, with everything that shares a passage: {shares}")
    else:
        best = max(found.made.values())
        # the first method that makes at least half as many queries as the best method
        method = next(each for each in METHODS if found.made[each] >= best / 2)
        queries = round(found.made[method] * found.passages)
        share = _share(queries)
        if not round(queries * share):
            raise InputError(
                f"{plural(queries, 'query')} can be made from {settings['path']}, too "
                "few to train on and to measure with; add texts, or give a table of pairs"
            )
        trained = round(queries * (1 - 2 * share))
        # judged queries choose the weights, if some are for choosing
        dev = next(filter(is_dev, judged), "")
        values |= {"dev": f"mine, {dev}" if dev else "dev", "method": method, "share": share}
        reasons.append(f"queries are made from the text ({method}): about {queries:,}")
        if DIVIDED in found.judged:
            reasons.append(f"fewer than {LEAST_QUERIES} queries in {DIVIDED}: not used")
    if queries < FEW_QUERIES:
        words = "too few to train much or to tell systems apart; add texts, or a table of pairs"
        reasons.append(f"WARNING: {plural(queries, 'query')}, {words}")
    values["source"] = settings
    values |= _training(found, machine, encoder, trained, pieces)
    if values["passage_length"] < pieces[0]:
        words = f"passages are cut at {values['passage_length']} word-pieces, the most for"
        reasons.append(f"{words} {'this encoder' if machine.gpus else 'this machine'}")
    return values, reasons


def _source(found: Survey) -> dict[str, Any]:
    """Return the settings of the collection, with its language if it is not English."""
    language = {} if found.language in ("en", WORDS) else {"language": found.language}
    return {"source": found.source, **found.settings, **language}


def _training(
    found: Survey, machine: Machine, encoder: Encoder | None, queries: int, pieces: tuple[int, int]
) -> dict[str, Any]:
    """Choose the sizes of the training; queries: the number of training queries."""
    on_gpu = bool(machine.gpus)
    batch = min(64 if on_gpu else 32, max(2, 2 ** int(math.log2(max(1, queries / 8)))))
    depth = max(2, min(100, found.passages // 4))
    longest = min(encoder.positions if encoder else 256, 512 if on_gpu else 256)
    passage_length = _length(pieces[0], longest)
    steps = max(1, queries) / batch  # tiny data may hold out every query
    # a head over 30,000 word-pieces is most of the work
    most = 20_000 if on_gpu else 500 if encoder else 2000
    return {
        "queries": batch,
        "depth": depth,
        "group": min(8 if on_gpu else 4, depth),
        "query_length": min(_length(pieces[1] or 16, 64), longest),
        "passage_length": passage_length,
        "epochs": max(1, min(4 if encoder else 16, math.ceil((100 if encoder else 400) / steps))),
        "pretraining_length": min(passage_length, 144 if on_gpu else 64),
        # 20 epochs, within limits
        "steps": max(200, min(most, round(20 * found.passages / 32))),
        "vocabulary": VOCABULARY,
    }


def _splits(found: Survey) -> tuple[str, dict[str, float]]:
    """Choose the split for tuning, and the shares of the training queries to hold out."""
    dev = next(filter(is_dev, found.judged), "")
    new = [] if dev else ["dev"]
    if not set(found.judged) - {DIVIDED, dev}:
        new.append("test")
    share = _share(found.judged[DIVIDED])
    # a split without judgments keeps its name
    return dev or "dev", {split: share for split in new if split not in found.unjudged}


def _share(queries: int) -> float:
    """Compute the share of the queries that moves into each new split."""
    return float(f"{min(0.1, MOST_HELD_OUT / max(1, queries)):.2g}")


def _length(pieces: int, most: int) -> int:
    """Round a length and two special word-pieces up to a multiple of 16, at most `most`."""
    return min(most, max(16, 16 * math.ceil((pieces + 2) / 16)))


def text(values: dict[str, Any], root: Path) -> str:
    """Format the config; paths below `root`, the working directory of runs, become relative."""
    environment = jinja2.Environment(
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=jinja2.StrictUndefined,
        autoescape=False,  # noqa: S701 (YAML, not HTML)
    )
    environment.filters["flow"] = _flow
    template = Path(__file__).with_name("my.yaml.j2").read_text(encoding="utf-8")
    return relative(environment.from_string(template).render(values), root)


def relative(text: str, root: Path) -> str:
    """Make the paths below `root` relative that begin in a text, unlike /mnt/root in `/root`."""
    return re.sub(rf"(?<![^\s\"'\[{{]){re.escape(str(root))}/", "", text)


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
    lines = [
        f"{found.source}: {plural(found.passages, 'passage')}",
        f"language {found.language}, by which BM25 analyses the passages",
        f"queries  {', '.join(splits) or 'none'}",
    ]
    if found.unread:
        lines.append(f"ignored  {listed([*map(show, found.unread)], most=3)}")
    return lines
