"""What the masks fall on: terms and stop-words (the paper's figure 2), the shaded example (figure 3), and sigma."""

from __future__ import annotations

import math
from functools import partial
from itertools import zip_longest
from typing import Any

from cdmae import formats
from cdmae.report.charts import Figure, Row, Series, lines, rows
from cdmae.report.comparisons import masking_pairs
from cdmae.report.facts import Facts
from cdmae.report.sections import Section, number_cell
from cdmae.report.tables import Cell, Table

KINDS = (("uniform", "uniformly", 1), ("importance", "by importance", 0))  # key, name, colour
percent = partial(formats.percent, decimals=1)


def section(facts: Facts) -> Section | None:
    """Show terms, example and sigma of the encoder of the first screen, or of the first that there is."""
    if not facts.masked_terms:
        return None
    masked = facts.masked_terms[shown_encoder(facts)]
    terms, tables, figures = masked_figures(masked), [], []
    if terms:
        tables.append(terms_table(masked))
    example = masked.get("example") or {}
    if example.get("words") and example.get("importance_aware"):
        figures.append(sampling(example))
    sweep = sigma_sweep(masked.get("sigma") or {})
    if sweep:
        tables.append(sweep)
        figures.append(_sigma(sweep, masked))
    values = {
        "shares": by_kind(masked, "stop_word_share"),
        "bits": by_kind(masked, "entropy"),
        "terms": terms,
        "more": figures,
        "words": list(zip(example.get("words") or [], example.get("importance") or [], strict=True)),
        "highest": max([*(value for value in example.get("importance") or [] if value > 0), 1e-9]),
    }
    return Section("masking", values, tables, [*terms, *figures])


def shown_encoder(facts: Facts) -> str:
    """Choose the encoder whose masks are shown."""
    encoders = [facts.entries("systems")[system]["encoder"] for system, _ in masking_pairs(facts)]
    return next(encoder for encoder in [*encoders, *facts.masked_terms] if encoder in facts.masked_terms)


def by_kind(masked: dict[str, Any], key: str) -> list[float] | None:
    """Look up a number of uniform masks and of masks by importance; None unless both are known."""
    numbers = [masked.get(kind, {}).get(key) for kind, _, _ in KINDS]
    return None if None in numbers else numbers


def masked_figures(masked: dict[str, Any]) -> list[Figure]:
    """Draw the most frequently masked terms of each kind of mask, on one scale."""
    terms = {kind: masked.get(kind, {}).get("top", []) for kind, _, _ in KINDS}
    highest = 100 * max((share for top in terms.values() for _, share in top), default=0)
    figures = []
    for kind, name, hue in KINDS:
        entries = [Row(str(term), percent(share), bar=100 * share, colour=hue) for term, share in terms[kind]]
        if entries:
            share = masked[kind].get("stop_word_share")
            title = f"Masked {name}" + (f": {formats.percent(share)} stop-words" if share is not None else "")
            style = {"low": 0, "high": highest, "axis": "share of all masked words, %", "beside": True}
            figures.append(rows(f"terms-{kind}", title, entries, **style))
    return figures


def terms_table(masked: dict[str, Any], name: str = "masked-terms") -> Table:
    """Tabulate the ten most masked terms of each kind, with their shares."""
    columns = [masked.get(kind, {}).get("top", []) for kind, _, _ in KINDS]
    body = []
    for rank, pair in enumerate(zip_longest(*columns, fillvalue=(formats.NONE, None)), 1):
        body.append([str(rank), *(cell for term, share in pair for cell in (str(term), number_cell(share, percent)))])
    shares = [number_cell(masked.get(kind, {}).get("stop_word_share"), percent) for kind, _, _ in KINDS]
    body.append(["", *(cell for share in shares for cell in ("all stop-words and punctuation", share))])
    head = ["rank", "uniform", "share", "importance-aware", "share "]
    return Table(name, "The most frequently masked terms", head, body, texts=["uniform", "importance-aware"])


def example_table(masked: dict[str, Any], name: str) -> Table:
    """Tabulate the words of the example: their importance, and how likely each kind of mask hides them."""
    example = masked["example"]
    columns = [example[key] for key in ("importance", "uniform", "importance_aware")]
    body = [
        [word, *(Cell(formats.minus(f"{value:.2f}"), float(value)) for value in values)]
        for word, *values in zip(example["words"], *columns, strict=True)
    ]
    return Table(name, "One sentence, word by word", ["word", "importance", "uniform", "importance-aware"], body)


def sigma_sweep(sweep: dict[str, Any]) -> Table | None:
    """Tabulate sigma against the stop-word share of the masked words and the overlap of two epochs' masks."""
    body = []
    for sigma, entry in sorted(sweep.items(), key=lambda item: float(item[0])):
        entry = entry if isinstance(entry, dict) else {"stop_word_share": entry}
        number = float(sigma)
        head = Cell("∞", "inf") if math.isinf(number) else Cell(f"{number:g}", number)
        shares = [number_cell(entry.get(key), percent) for key in ("stop_word_share", "overlap")]
        body.append([head, *shares, number_cell(entry.get("entropy"), "{:.1f}".format)])
    if len(body) < 2:
        return None
    caption = "The noise on importance: sigma from none to infinite (uniform)"
    return Table("sigma", caption, ["σ", "stop-word share", "overlap of two epochs", "entropy, bits"], body)


def sampling(example: dict[str, Any]) -> Figure:
    """Draw how likely each word of the example is masked, by both kinds: the paper's figure 3."""
    entries = [
        Row(word, f"{aware:.2f}", dots=((uniform, 1), (aware, 0)))
        for word, uniform, aware in zip(example["words"], example["uniform"], example["importance_aware"], strict=True)
    ]
    title = "How likely the decoder must restore each word"
    legend = [("importance-aware", 0), ("uniform", 1)]
    return rows("sampling", title, entries, low=0, high=1, legend=legend, axis="probability", beside=True)


def _sigma(sweep: Table, masked: dict[str, Any]) -> Figure:
    series = []
    for name, column, colour in (("stop-word share", 1, 0), ("overlap of two epochs' masks", 2, 3)):
        heights = [row[column].value for row in sweep.rows]
        if any(height is not None for height in heights):
            heights = [math.nan if height is None else height for height in heights]
            series.append(Series(name, range(len(heights)), heights, colour))
    uniform = masked.get("uniform", {}).get("stop_word_share")
    return lines(
        "sigma", "How much noise: sigma", series, x_axis="σ, standard deviation in nats", y_axis="share",
        x_names=[row[0].text for row in sweep.rows], low=0, high=1, markers=True,
        reference=("stop-word share of uniform masks", uniform) if uniform is not None else None,
    )  # fmt: skip
