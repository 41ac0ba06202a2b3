"""The report: one page that opens offline, and its tables and figures as files.

``index.html`` answers first whether masking by importance helped; then come the sections, one file each. `facts` reads
what the workflow wrote, `comparisons` finds systems that may be compared, `tables`, `figures` and `charts` draw,
`markup` and `page` write HTML.
"""

from __future__ import annotations

from pathlib import Path

from cdmae import formats
from cdmae.files import complete, write_text
from cdmae.report import facts as facts_module
from cdmae.report.facts import Facts
from cdmae.report.page import page, table_page
from cdmae.report.paper import exhibits
from cdmae.report.sections import (
    Section,
    answer,
    bottleneck,
    changes,
    cost,
    growth,
    limits,
    masking,
    negatives,
    paper,
    queries,
    ranking,
    results,
    seeds,
    setting,
    stages,
    training,
    zero_shot,
)
from cdmae.report.tables import Table

ORDER = (
    answer, setting, ranking, results, stages, zero_shot, growth, changes, paper, masking, bottleneck, negatives,
    queries, training, cost, limits,
)  # fmt: skip
TITLE = "Importance-aware masking for dense retrieval"


def build(facts: Path | str, output: Path | str) -> None:
    """Write the report on the facts file `facts` into the folder `output`."""
    write(facts_module.read(facts), output)


def write(facts: Facts, output: Path | str) -> None:
    """Write ``index.html``, ``tables/`` and ``figures/``; the folder appears when all of it is there."""
    sections = [found for module in ORDER if (found := module.section(facts))]
    with complete(output) as folder:
        for name in ("tables", "figures"):
            (folder / name).mkdir(parents=True)
        for section in sections:
            _files(folder, section)
        title = facts.config.get("report", {}).get("title") or TITLE
        (folder / "index.html").write_text(page(title, kicker(facts), sections), encoding="utf-8")


def write_exhibit(name: str, facts: Path | str, output: Path | str) -> None:
    """Write one of the paper's tables or figures, ``table_stages.csv`` and so on, into the folder `output`."""
    found = facts_module.read(facts)
    table = exhibits.table(name, found)
    forms = {"csv": table.csv()}
    if name.startswith("figure"):
        forms["svg"] = exhibits.figure(name, found).standalone() + "\n"
    else:
        forms = _forms(table)
    for kind, text in forms.items():
        write_text(Path(output) / f"{name}.{kind}", text)


def kicker(facts: Facts) -> list[str]:
    """The parts of the line below the title: what was measured, how much of it, which seeds."""
    parts = []
    if facts.targets:
        names = list(dict.fromkeys(target.collection for target in facts.targets))
        some = names if len(names) <= 4 else [*names[:3], f"{len(names) - 3} more"]
        parts.append(f"{formats.plural(len(facts.systems), 'system')} on {formats.listed(some)}")
    parts.append(seeds(facts))
    if facts.started:
        parts.append(f"started {facts.started}")
    return parts


def _forms(table: Table) -> dict[str, str]:
    return {"csv": table.csv(), "md": table.markdown(), "tex": table.tex(), "html": table_page(table)}


def _files(folder: Path, section: Section) -> None:
    for table in section.tables:
        for kind, text in _forms(table).items():
            (folder / "tables" / f"{table.name}.{kind}").write_text(text, encoding="utf-8")
    for figure in section.figures:
        (folder / "figures" / f"{figure.name}.svg").write_text(figure.standalone() + "\n", encoding="utf-8")
