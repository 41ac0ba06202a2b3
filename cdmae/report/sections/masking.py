"""Show the masked words: frequent terms (figure 2), an example (figure 3), and sigma's effect."""

from __future__ import annotations

from functools import partial
from itertools import zip_longest
from typing import Any

import pandas as pd

from cdmae import formats
from cdmae.importance.shading import Word
from cdmae.report.charts import Figure, Row, Series, lines, rows
from cdmae.report.comparisons import masking_pairs
from cdmae.report.facts import Facts
from cdmae.report.recipes import shown
from cdmae.report.sections import Section
from cdmae.report.tables import Table

KINDS = (("uniform", "uniformly", 1), ("importance", "by importance", 0))  # key, name, colour
SWEPT = {
    "stop_word_share": "stop-word share",
    "overlap": "overlap of two epochs",
    "entropy": "entropy, bits",
}
LINES = (
    ("stop-word share", "stop_word_share", 0),
    ("overlap of two epochs' masks", "overlap", 3),
)  # of sigma
percent = partial(formats.percent, decimals=1)


def section(facts: Facts) -> Section | None:
    """Show the masks of the encoder in the first section, or else of the first encoder."""
    if not facts.masked_terms:
        return None
    masked = facts.masked_terms[shown_encoder(facts)]
    terms = masked_figures(masked)
    example = masked["example"]
    sweep, figure = sigma_sweep(masked)
    figures = [drawn for drawn in (sampling(example), figure) if drawn]
    values = {
        "shares": by_kind(masked, "stop_word_share"),
        "bits": by_kind(masked, "entropy"),
        "terms": terms,
        "more": figures,
        "words": list(map(Word, *(example[key] for key in ("words", "importance", "seen")))),
        "passages": masked.get("passages", []),
        "highest": max([1e-9, *example["importance"]]),
    }
    return Section("masking", values, [terms_table(masked), sweep], [*terms, *figures])


def shown_encoder(facts: Facts) -> str:
    """Choose the encoder for the examples of masks."""
    encoders = [facts.encoder_of(system) for system, _ in masking_pairs(facts)]
    return next(
        encoder for encoder in [*encoders, *facts.masked_terms] if encoder in facts.masked_terms
    )


def by_kind(masked: dict[str, Any], key: str) -> list[float]:
    """Look up a value for uniform masks and for importance-aware masks."""
    return [masked[kind][key] for kind, _, _ in KINDS]


def masked_figures(masked: dict[str, Any]) -> list[Figure]:
    """Draw the most frequently masked terms for each kind of mask, on one scale."""
    highest = 100 * max((share for top in by_kind(masked, "top") for _, share in top), default=0)
    figures = []
    for kind, name, hue in KINDS:
        entries = [
            Row(term, percent(share), bar=100 * share, colour=hue)
            for term, share in masked[kind]["top"]
        ]
        title = f"Masked {name}: {formats.percent(masked[kind]['stop_word_share'])} stop-words"
        style = {"low": 0, "high": highest, "axis": "share of all masked words, %", "beside": True}
        figures.append(rows(f"terms-{kind}", title, entries, **style))
    return [figure for figure in figures if figure]


def terms_table(masked: dict[str, Any], name: str = "masked-terms") -> Table:
    """Tabulate the ten most frequently masked terms for each kind of mask, with their shares."""
    ranked = zip_longest(*by_kind(masked, "top"), fillvalue=(formats.NONE, None))
    body = [[str(rank), *first, *second] for rank, (first, second) in enumerate(ranked, 1)]
    uniform, aware = (
        ("all stop-words and punctuation", share) for share in by_kind(masked, "stop_word_share")
    )
    head = ["rank", "uniform", "share", "importance-aware", "share "]
    frame = pd.DataFrame([*body, ["", *uniform, *aware]], columns=head)
    forms = {"share": percent, "share ": percent}
    caption = "The most frequently masked terms"
    return Table.of(name, caption, frame, forms, texts=["uniform", "importance-aware"])


def example_table(masked: dict[str, Any], name: str) -> Table:
    """Tabulate the example's words: importance, and the probability under each kind of mask."""
    names = {"words": "word", "seen": "n-grams seen", "importance_aware": "importance-aware"}
    frame = pd.DataFrame(masked["example"]).rename(columns=names)
    forms = dict.fromkeys(frame.columns[1:], lambda value: formats.minus(f"{value:.2f}"))
    return Table.of(name, "One sentence, word by word", frame, forms)


def sigma_sweep(masked: dict[str, Any]) -> tuple[Table, Figure]:
    """Show sigma's effect on the share of masked stop-words and on the overlap of epochs' masks."""
    frame = pd.DataFrame(masked["sigma"]).T[list(SWEPT)].rename(index=float).sort_index()
    forms = {
        "σ": shown,
        **dict.fromkeys(SWEPT.values(), percent),
        SWEPT["entropy"]: "{:.1f}".format,
    }
    caption = "The noise on importance: sigma from none to infinite (uniform)"
    table = Table.of("sigma", caption, frame.rename(columns=SWEPT).reset_index(names="σ"), forms)
    series = [
        Series(name, range(len(frame)), frame[column].tolist(), colour)
        for name, column, colour in LINES
    ]
    return table, lines(
        "sigma",
        "How much noise: sigma",
        series,
        x_axis="σ, standard deviation in nats",
        y_axis="share",
        x_names=[shown(sigma) for sigma in frame.index],
        low=0,
        high=1,
        markers=True,
        reference=("stop-word share of uniform masks", masked["uniform"]["stop_word_share"]),
    )


def sampling(example: dict[str, Any]) -> Figure | None:
    """Draw the probability of masking each word of the example, as in the paper's figure 3."""
    entries = [
        Row(word, f"{aware:.2f}", dots=((uniform, 1), (aware, 0)))
        for word, uniform, aware in zip(
            example["words"], example["uniform"], example["importance_aware"], strict=True
        )
    ]
    title = "How likely the decoder must restore each word"
    legend = [("importance-aware", 0), ("uniform", 1)]
    return rows(
        "sampling", title, entries, low=0, high=1, legend=legend, axis="probability", beside=True
    )
