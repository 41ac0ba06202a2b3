"""Show the ranks of two systems query by query, with the passages that each ranks first.

The page's script lets the reader choose the two systems and a query; without it, the page shows
the scatter of the default pair.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pandas as pd

from cdmae import formats
from cdmae.collections.store import count_passages, read_queries, take_passages
from cdmae.importance.shading import Shades
from cdmae.report.columns import Column, main_column
from cdmae.report.comparisons import retrievers
from cdmae.report.facts import Facts, Target
from cdmae.report.plots import rank_scatter
from cdmae.report.sections import Section, insight
from cdmae.runs import Run, read_run

MOST = 4  # systems between which the reader chooses
SAMPLE = 2000  # queries whose ranks are drawn
EXPLAINED = 60  # queries, evenly spaced, whose passages are shown
FIRST = 3  # passages of each system


def section(facts: Facts) -> Section | None:
    """Show the scatter of two systems, and pass ranks and passages to the page's script."""
    column = main_column(facts)
    if not column or list(column.target) != facts.paths.get("deciding"):
        return None
    names = shown_systems(column)
    if len(names) < 2:
        return None
    folder = facts.paths["collections"][column.target.collection]
    judged = insight.relevant(folder, column.target.split)
    judged = judged[judged["passage"] < count_passages(folder)]
    if judged.empty:
        return None
    runs = [read_run(facts.paths["runs"][name]) for name in names]
    ranks = np.stack([insight.first_ranks(run, judged["key"].to_numpy()) for run in runs])
    asked = np.unique(judged["query"])
    drawn = asked[insight.evenly(len(asked), SAMPLE)]
    explained = _explained(ranks, asked)
    drawn = np.union1d(drawn, explained)
    depth = max((int(np.diff(run.starts).max(initial=0)) for run in runs), default=0)
    figure = rank_scatter(names[0], names[1], ranks[:2, drawn], depth)
    data = {
        "systems": names,
        "depth": depth,
        "ranks": ranks[:, drawn].tolist(),
        **_details(facts, column.target, folder, judged, runs, explained),
        "explained": np.searchsorted(drawn, explained).tolist(),
    }
    values = {
        "facts": facts,
        "target": column.target,
        "names": names,
        "drawn": len(drawn),
        "asked": len(asked),
        "explained": len(explained),
        "shaded": "shades" in facts.paths,
        "data": {"queries": data},
    }
    return Section("explorer", values, figures=[figure])


def shown_systems(column: Column) -> list[str]:
    """Choose systems with runs: BM25, the best retriever, the best system, and the masking pair."""
    facts = column.facts
    runs = facts.paths.get("runs", {})
    means = {name: column.value(name) for name in facts.systems if name in runs}
    means = {name: mean for name, mean in means.items() if not math.isnan(mean)}
    trained = {name: means[name] for name in retrievers(facts) if name in means}
    named = [
        facts.bm25,
        max(trained, key=trained.__getitem__, default=""),
        max(means, key=means.__getitem__, default=""),
        *(insight.compared(facts) or ()),
        *means,
    ]
    return [name for name in dict.fromkeys(named) if name in means][:MOST]


def _explained(ranks: np.ndarray, asked: np.ndarray) -> np.ndarray:
    """Choose queries: the largest changes between the first two systems, and evenly spaced ones."""
    extremes = insight.select(ranks[:2], asked)
    rows = [*asked[insight.evenly(len(asked), EXPLAINED)]]
    return np.unique(np.concatenate([rows, *extremes.values()]).astype(np.int64))


def _details(
    facts: Facts,
    target: Target,
    folder: str,
    judged: pd.DataFrame,
    runs: list[Run],
    queries: np.ndarray,
) -> dict[str, Any]:
    """Gather the texts of the queries, of judged passages, and of each system's first passages.

    A passage is an index into `texts`. An entry of `texts` has the passage's text, the length of
    its title, and a digit of importance for each word (0 to 5), or nothing if the words have no
    importance.
    """
    relevant = judged[judged["query"].isin(queries)].groupby("query")["passage"].agg(list)
    judged_of = [relevant.get(query, [])[:FIRST] for query in queries]
    first_of = [[run.ranked(query)[0][:FIRST].tolist() for run in runs] for query in queries]
    every = [*sum(judged_of, []), *(row for first in first_of for part in first for row in part)]
    needed = np.unique(np.array(every, np.int64))
    index = {row: at for at, row in enumerate(needed.tolist())}
    table = take_passages(folder, needed)
    shades = None
    if "shades" in facts.paths:
        shades = Shades(facts.paths["shades"]["importance"], facts.paths["shades"]["tokenizer"])
    texts = []
    titles = table.column("title").to_pylist()
    for title, text in zip(titles, table.column("text").to_pylist(), strict=True):
        words = insight.cut(formats.one_line(f"{title} {text}"))
        texts.append([words, digits(shades, words)] if shades else [words])
    asked = read_queries(folder, target.split)["text"].to_numpy()
    return {
        "texts": texts,
        "asked": [formats.one_line(asked[query]) for query in queries],
        "judged": [[index[row] for row in rows] for rows in judged_of],
        "first": [[[index[row] for row in rows] for rows in of] for of in first_of],
    }


def digits(shades: Shades, text: str) -> str:
    """Return a digit from 0 to 5 for each word between spaces: the darkest shade in the word."""
    levels = "".join(str(span.shade) * len(span.text) for span in shades.spans(text))
    found = []
    at = 0
    for word in text.split(" "):
        found.append(max(levels[at : at + len(word)], default="0"))
        at += len(word) + 1
    return "".join(found)
