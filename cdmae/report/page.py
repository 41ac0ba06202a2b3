"""Write the report: ``index.html``, its tables and its figures.

It begins with the alarms of the run. The first screen answers the question which system to use.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from cdmae.files import complete, write_text
from cdmae.report import facts as facts_module
from cdmae.report.facts import Facts
from cdmae.report.glossary import TERMS
from cdmae.report.paper import exhibits
from cdmae.report.sections import (
    alarms,
    answer,
    changes,
    choice,
    combined,
    curve,
    explorer,
    insight,
    masking,
    ranking,
    results,
    setting,
    sparse_systems,
    training,
    typos,
)
from cdmae.report.tables import Table
from cdmae.report.templates import fill

ORDER = (
    alarms.section,
    choice.section,
    answer.section,
    setting.section,
    ranking.section,
    results.section,
    results.zero_shot,
    typos.section,
    combined.section,
    sparse_systems.section,
    changes.stages,
    changes.growth,
    curve.section,
    changes.section,
    exhibits.section,
    masking.section,
    training.bottleneck,
    insight.negatives,
    explorer.section,
    insight.queries,
    training.section,
    setting.cost,
    answer.limits,
)
TITLE = "Importance-aware masking for dense retrieval"


def build(facts: dict[str, Any], output: Path | str) -> None:
    """Write the report of the facts that `cdmae.report.facts` reads."""
    write(facts_module.read(facts), output)


def write(facts: Facts, output: Path | str) -> None:
    """Write the page, its tables and its figures into the folder `output`."""
    gathered = [gather(facts) for gather in ORDER]
    sections = [section for section in gathered if section]
    title = facts.config.get("report", {}).get("title") or TITLE
    with complete(output) as folder:
        for name in ("tables", "figures"):
            (folder / name).mkdir(parents=True)
        for table in (table for section in sections for table in section.tables):
            for kind, text in _forms(table).items():
                (folder / "tables" / f"{table.name}.{kind}").write_text(text, encoding="utf-8")
        for figure in (figure for section in sections for figure in section.figures):
            (folder / "figures" / f"{figure.name}.svg").write_text(
                figure.standalone() + "\n", encoding="utf-8"
            )
        data: dict[str, Any] = {}  # for the page's script
        for section in sections:
            data |= section.values.get("data", {})
        page = fill(
            "page.html.j2",
            title=title,
            facts=facts,
            sections=sections,
            data=data,
            origin={"commit": "", "changed": False, "command": "", **facts.origin},
            terms=TERMS,
        )
        (folder / "index.html").write_text(f"{page}\n", encoding="utf-8")


def write_exhibit(name: str, facts: dict[str, Any] | Path, output: Path) -> None:
    """Write an exhibit of the paper, such as ``table_stages.csv``, into the folder `output`."""
    measured = facts_module.read(facts)
    table = exhibits.table(name, measured)
    if name.startswith("figure"):
        forms = {"csv": table.csv(), "svg": exhibits.figure(name, measured).standalone() + "\n"}
    else:
        forms = _forms(table)
    for kind, text in forms.items():
        write_text(Path(output) / f"{name}.{kind}", text)


def _forms(table: Table) -> dict[str, str]:
    page = fill("table.html.j2", title=table.caption, table=table)
    return {"csv": table.csv(), "md": table.markdown(), "tex": table.tex(), "html": f"{page}\n"}
