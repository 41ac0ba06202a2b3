"""What the masks fall on: terms and stop-words (the paper's figure 2), the shaded example (figure 3), and sigma."""

from __future__ import annotations

import math
from typing import Any

from cdmae import formats
from cdmae.report.charts import Row, Series, lines, rows
from cdmae.report.comparisons import masking_pairs
from cdmae.report.facts import Facts
from cdmae.report.figures import Figure
from cdmae.report.markup import Markup, fill, join, tag
from cdmae.report.sections import Section, panels, paragraphs
from cdmae.report.tables import Cell, Table

SHADE = 60  # percent of the colour behind the most important word
KINDS = (("uniform", "uniformly", 1), ("importance", "by importance", 0))  # key, name, colour


def section(facts: Facts) -> Section | None:
    """Terms, example and sigma of the encoder of the first screen, or of the first that there is."""
    if not facts.masked_terms:
        return None
    encoder = shown_encoder(facts)
    found = facts.masked_terms[encoder]
    figures, tables, body = [], [], [paragraphs(_lead(found))]
    terms = masked_figures(found)
    if terms:
        tables.append(terms_table(found))
        figures += terms
        body.append(panels(terms))
    example = found.get("example") or {}
    if example.get("words"):
        body += [tag("h3", "One sentence, shaded by importance"), shaded(example["words"], example["importance"])]
        if example.get("importance_aware"):
            figures.append(sampling(example))
    sweep = sigma_sweep(found.get("sigma") or {})
    if sweep:
        tables.append(sweep)
        figures.append(_sigma(sweep, found))
    body += [paragraphs(_example_text(example)), panels(figures[len(terms) :])]
    if tables:
        body.append(tag("details", tag("summary", "The same in numbers"), *(table.html() for table in tables)))
    return Section("masking", "What the masks fall on", "Masks", Markup("".join(body)), tables=tables, figures=figures)


def shown_encoder(facts: Facts) -> str:
    """The encoder whose masks are shown."""
    for first, _ in masking_pairs(facts):
        encoder = facts.entries("systems")[first]["encoder"]
        if encoder in facts.masked_terms:
            return encoder
    return next(iter(facts.masked_terms))


def masked_figures(found: dict[str, Any]) -> list[Figure]:
    """The most frequently masked terms of each kind of mask."""
    return [_terms(found, *kind) for kind in KINDS if found.get(kind[0], {}).get("top")]


def terms_table(found: dict[str, Any], name: str = "masked-terms") -> Table:
    """The ten most masked terms of each kind, with their shares."""
    columns = [[*found.get(kind, {}).get("top", [])] for kind, _, _ in KINDS]
    body = []
    for rank in range(max(map(len, columns))):
        cells: list[Cell | str] = [str(rank + 1)]
        for column in columns:
            term, share = column[rank] if rank < len(column) else (formats.NONE, math.nan)
            cells += [str(term), _share(share)]
        body.append(cells)
    shares = [found.get(kind, {}).get("stop_word_share", math.nan) for kind, _, _ in KINDS]
    body.append(["", *(cell for share in shares for cell in ("all stop-words and punctuation", _share(share)))])
    head = ["rank", "uniform", "share", "importance-aware", "share "]
    return Table(name, "The most frequently masked terms", head, body, texts=["uniform", "importance-aware"])


def example_table(found: dict[str, Any], name: str) -> Table:
    """The words of the example: their importance, and how likely each kind of mask hides them."""
    example = found["example"]
    columns = [example[key] for key in ("importance", "uniform", "importance_aware")]
    body = [
        [word, *(Cell(formats.minus(f"{value:.2f}"), float(value)) for value in values)]
        for word, *values in zip(example["words"], *columns, strict=True)
    ]
    return Table(name, "One sentence, word by word", ["word", "importance", "uniform", "importance-aware"], body)


def sigma_sweep(found: dict[str, Any]) -> Table | None:
    """Sigma against the stop-word share of the masked words and the overlap of two epochs' masks."""
    body = []
    for sigma, entry in found.items():
        entry = entry if isinstance(entry, dict) else {"stop_word_share": entry}
        number = float(sigma)
        text = "\N{INFINITY}" if math.isinf(number) else f"{number:g}"
        cells = [_share(entry.get(key, math.nan)) for key in ("stop_word_share", "overlap")]
        cells.append(_bits(entry.get("entropy")))
        body.append((number, [Cell(text, "inf" if math.isinf(number) else number), *cells]))
    if len(body) < 2:
        return None
    caption = "The noise on importance: sigma from none to infinite (uniform)"
    head = ["\N{GREEK SMALL LETTER SIGMA}", "stop-word share", "overlap of two epochs", "entropy, bits"]
    return Table("sigma", caption, head, [cells for _, cells in sorted(body, key=lambda each: each[0])])


def shaded(words: list[str], values: list[float]) -> Markup:
    """Words on a ground as dark as they are important, the number below each."""
    top = max([*(value for value in values if value > 0), 1e-9])
    spans = [
        tag(
            "span",
            tag("span", word, style=f"--at:{round(SHADE * max(0.0, min(1.0, value / top)))}%"),
            tag("small", formats.minus(f"{value:.1f}")),
            class_="word",
        )
        for word, value in zip(words, values, strict=True)
    ]
    return tag("p", join(spans, " "), class_="shaded")


def _share(share: float) -> Cell:
    return Cell(formats.percent(share, decimals=1), share) if share == share else Cell(formats.NONE)


def _bits(entropy: float | None) -> Cell:
    return Cell(formats.NONE) if entropy is None else Cell(f"{entropy:.1f}", entropy)


def _lead(found: dict[str, Any]) -> Markup | None:
    shares, bits = ([found.get(kind, {}).get(key) for kind, _, _ in KINDS] for key in ("stop_word_share", "entropy"))
    if None in shares:
        return None
    text = fill(
        "Of what uniform masking hides, {uniform} is stop-words and punctuation; of what masking by importance hides, "
        "{aware}. The paper counts 40{space}% under the uniform masks of BERT.",
        uniform=formats.percent(shares[0]), aware=formats.percent(shares[1]), space="\N{NO-BREAK SPACE}",
    )  # fmt: skip
    if None in bits:
        return text
    return Markup(text + fill(
        " What the decoder must restore is as varied as {uniform} equally frequent word-pieces under uniform masks "
        "(an entropy of {few}&nbsp;bits), and as {aware} under masks by importance ({many}&nbsp;bits).",
        uniform=formats.count(2 ** bits[0]), few=f"{bits[0]:.1f}", aware=formats.count(2 ** bits[1]),
        many=f"{bits[1]:.1f}",
    ))  # fmt: skip


def _terms(found: dict[str, Any], kind: str, name: str, colour: int) -> Figure:
    top = found[kind]["top"]
    highest = 100 * max(share for key, _, _ in KINDS for _, share in found.get(key, {}).get("top", []))
    entries = [
        Row(str(term), formats.percent(share, decimals=1), bar=100 * share, colour=colour) for term, share in top
    ]
    share = found[kind].get("stop_word_share")
    title = f"Masked {name}" + (f": {formats.percent(share)} stop-words" if share is not None else "")
    axis = "share of all masked words, %"
    return rows(f"terms-{kind}", title, entries, low=0, high=highest, axis=axis, beside=True)


def sampling(example: dict[str, Any]) -> Figure:
    """How likely each word of the example is masked, by both kinds: the paper's figure 3."""
    entries = [
        Row(word, f"{aware:.2f}", dots=((uniform, 1), (aware, 0)))
        for word, uniform, aware in zip(example["words"], example["uniform"], example["importance_aware"], strict=True)
    ]
    title = "How likely the decoder must restore each word"
    legend = [("importance-aware", 0), ("uniform", 1)]
    return rows("sampling", title, entries, low=0, high=1, legend=legend, axis="probability", beside=True)


def _sigma(sweep: Table, found: dict[str, Any]) -> Figure:
    places = list(range(len(sweep.rows)))
    series = [
        Series(name, places, [_number(row[column]) for row in sweep.rows], colour)
        for name, column, colour in (("stop-word share", 1, 0), ("overlap of two epochs' masks", 2, 3))
    ]
    series = [each for each in series if any(value == value for value in each.y)]
    uniform = found.get("uniform", {}).get("stop_word_share")
    title = "How much noise: sigma"
    return lines(
        "sigma", title, series, x_axis="\N{GREEK SMALL LETTER SIGMA}, standard deviation in nats",
        y_axis="share", x_names=[row[0].text for row in sweep.rows], low=0, high=1, markers=True,
        reference=("stop-word share of uniform masks", uniform) if uniform is not None else None,
    )  # fmt: skip


def _number(cell: Cell | str) -> float:
    return cell.value if isinstance(cell, Cell) and isinstance(cell.value, float) else math.nan


def _example_text(example: dict[str, Any]) -> str | None:
    if not example.get("words"):
        return None
    return (
        "The number is the word's average mutual information with its neighbours (equation 8), in nats. The decoder "
        "masks the words that are highest after Gaussian noise of standard deviation \N{GREEK SMALL LETTER SIGMA}: "
        "with little noise nearly the same words in every epoch, with much of it any words."
    )
