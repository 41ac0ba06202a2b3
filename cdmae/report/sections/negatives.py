"""What the retrievers learn from: how alike the negatives of the stages are, and how many may be none."""

from __future__ import annotations

from cdmae import formats
from cdmae.report.charts import Row, Series, lines, rows
from cdmae.report.facts import Facts
from cdmae.report.figures import Figure
from cdmae.report.insight import Bucket, Overlap, audit, overlaps
from cdmae.report.markup import Markup, tag
from cdmae.report.sections import GREY, Section, colour, panels, paragraphs
from cdmae.report.tables import Cell, Table


def section(facts: Facts) -> Section | None:
    """Overlap and audit, of the chain that masks by importance."""
    pairs, (student, buckets) = overlaps(facts), audit(facts)
    if not pairs and not buckets:
        return None
    figures, tables, texts = [], [], []
    if pairs:
        figures.append(_overlap(pairs))
        tables.append(_overlap_table(pairs))
        texts.append(_alike(pairs))
    if buckets:
        figures.append(_audit(facts, student, buckets))
        tables.append(_audit_table(student, buckets))
        texts.append(_doubtful(student, buckets))
    folded = tag("details", tag("summary", "The same in numbers"), *(table.html() for table in tables))
    body = Markup("".join([paragraphs(*texts), panels(figures), folded]))
    return Section("negatives", "What the negatives are", "Negatives", body, tables=tables, figures=figures)


def _alike(pairs: list[Overlap]) -> str:
    found = [
        f"{formats.percent(pair.jaccard[-1])} for {pair.first} and {pair.second} (best {pair.depths[-1]})"
        for pair in pairs
    ]
    return (
        "Each stage takes its hard negatives from the run of the one before. Of the passages that two such lists name, "
        f"they share {formats.listed(found)}, on average over the training queries; judged passages are left out."
    )


def _doubtful(student: str, buckets: list[Bucket]) -> str:
    mined = [bucket for bucket in buckets if bucket.label.startswith("rank")]
    share = sum(bucket.above * bucket.scored for bucket in mined) / max(sum(bucket.scored for bucket in mined), 1)
    return (
        f"The teacher of {student} scores {formats.percent(share)} of its mined negatives above the judged passage: "
        "false negatives where the teacher is right, its own errors where it is not. A teacher that knew nothing would "
        "put about half of them there."
    )


def _overlap(pairs: list[Overlap]) -> Figure:
    depths = sorted({depth for pair in pairs for depth in pair.depths})
    series = [
        Series(f"{pair.first} and {pair.second}", [depths.index(each) for each in pair.depths], pair.jaccard, number)
        for number, pair in enumerate(pairs)
    ]
    title = "How alike the negatives of two stages are"
    return lines(
        "negatives-overlap", title, series, x_axis="best K of each list", y_axis="Jaccard index", low=0, markers=True,
        x_names=[str(depth) for depth in depths],
    )  # fmt: skip


def _overlap_table(pairs: list[Overlap]) -> Table:
    body = [
        [pair.first, pair.second, Cell(str(depth), depth), Cell(formats.percent(value, decimals=1), value)]
        for pair in pairs
        for depth, value in zip(pair.depths, pair.jaccard, strict=True)
    ]
    head = ["negatives of", "and of", "best K", "Jaccard index"]
    return Table("negatives-overlap", "How alike the negatives of two stages are", head, body, heads=2)


def _audit(facts: Facts, student: str, buckets: list[Bucket]) -> Figure:
    entries = [
        Row(
            bucket.label,
            formats.percent(bucket.above, decimals=1),
            bar=100 * bucket.above,
            colour=colour(facts, student) if bucket.label.startswith("rank") else GREY,
        )
        for bucket in buckets
    ]
    title = "Negatives that the teacher prefers to the judged passage"
    return rows("negatives-audit", title, entries, low=0, axis="share of the negatives it scored, %", beside=True)


def _audit_table(student: str, buckets: list[Bucket]) -> Table:
    body = [
        [bucket.label, Cell(formats.count(bucket.scored), bucket.scored),
         Cell(formats.percent(bucket.above, decimals=1), bucket.above)]
        for bucket in buckets
    ]  # fmt: skip
    caption = f"Negatives of {student} that its teacher scores above the judged passage"
    return Table("negatives-audit", caption, ["negatives", "scored", "above"], body)
