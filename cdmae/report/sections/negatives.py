"""What the retrievers learn from: how alike the negatives of the stages are, and how many may be none."""

from __future__ import annotations

from functools import partial

from cdmae import formats
from cdmae.report.charts import Figure, Row, Series, lines, rows
from cdmae.report.facts import Facts
from cdmae.report.insight import Bucket, Overlap, audit, overlaps
from cdmae.report.sections import GREY, Section, colour, number_cell
from cdmae.report.tables import Table

percent = partial(formats.percent, decimals=1)


def section(facts: Facts) -> Section | None:
    """Show overlap and audit, of the chain that masks by importance."""
    pairs, (student, buckets) = overlaps(facts), audit(facts)
    if not pairs and not buckets:
        return None
    figures, tables = [], []
    if pairs:
        figures.append(_overlap(pairs))
        tables.append(_overlap_table(pairs))
    if buckets:
        figures.append(_audit(buckets, colour(facts, student)))
        tables.append(_audit_table(student, buckets))
    mined = [bucket for bucket in buckets if bucket.label.startswith("rank")]
    above = sum(bucket.above * bucket.scored for bucket in mined) / max(sum(bucket.scored for bucket in mined), 1)
    values = {"overlaps": pairs, "audited": bool(buckets), "student": student, "above": above}
    return Section("negatives", values, tables, figures)


def _overlap(pairs: list[Overlap]) -> Figure:
    depths = sorted({depth for pair in pairs for depth in pair.depths})
    series = [
        Series(f"{pair.first} and {pair.second}", [depths.index(depth) for depth in pair.depths], pair.jaccard, number)
        for number, pair in enumerate(pairs)
    ]
    title = "How alike the negatives of two stages are"
    return lines(
        "negatives-overlap", title, series, x_axis="best K of each list", y_axis="Jaccard index", low=0, markers=True,
        x_names=[str(depth) for depth in depths],
    )  # fmt: skip


def _overlap_table(pairs: list[Overlap]) -> Table:
    body = [
        [pair.first, pair.second, number_cell(depth, str), number_cell(jaccard, percent)]
        for pair in pairs
        for depth, jaccard in zip(pair.depths, pair.jaccard, strict=True)
    ]
    head = ["negatives of", "and of", "best K", "Jaccard index"]
    return Table("negatives-overlap", "How alike the negatives of two stages are", head, body, heads=2)


def _audit(buckets: list[Bucket], hue: int) -> Figure:
    entries = []
    for label, _, above in buckets:
        entries.append(Row(label, percent(above), bar=100 * above, colour=hue if label.startswith("rank") else GREY))
    title = "Negatives that the teacher prefers to the judged passage"
    return rows("negatives-audit", title, entries, low=0, axis="share of the negatives it scored, %", beside=True)


def _audit_table(student: str, buckets: list[Bucket]) -> Table:
    body = [
        [label, number_cell(scored, formats.count), number_cell(above, percent)] for label, scored, above in buckets
    ]
    caption = f"Negatives of {student} that its teacher scores above the judged passage"
    return Table("negatives-audit", caption, ["negatives", "scored", "above"], body)
