"""Write the report: ``index.html``, the frames of its numbers, and two tables for papers.

The page begins with the alarms of the run. The first screen answers which system to use.
"""

from __future__ import annotations

from pathlib import Path

from markupsafe import Markup

from cdmae.circumstances import circumstances
from cdmae.config.schema import Config
from cdmae.files import complete, write_json, write_text
from cdmae.report import frames as frames_module
from cdmae.report import tables
from cdmae.report.alarms import alarms
from cdmae.report.comparisons import EVERY_PAIR, PLANNED
from cdmae.report.facts import Facts
from cdmae.report.frames import Frames
from cdmae.report.notation import printable
from cdmae.report.paper import exhibits
from cdmae.report.sections.all_measures import measures
from cdmae.report.sections.differences import differences, shown
from cdmae.report.sections.method import method
from cdmae.report.sections.origin import command, setup
from cdmae.report.sections.queries import queries
from cdmae.report.sections.training import training
from cdmae.report.sections.use import overview, use
from cdmae.report.templates import fill

# sections by the names of their templates, with their names in the links of the header
SECTIONS = {
    use: "Systems",
    differences: "Differences",
    measures: "Measures",
    method: "Method",
    training: "Training",
    queries: "Queries",
    setup: "Set-up",
}


def write_report(config: Config, output: Path, record: Path) -> None:
    """Write the page of a run, its numbers, and a record of its config and circumstances."""
    facts = Facts(config, circumstances())
    write(facts, output)
    write_json(record, {"config": facts.plain, **facts.circumstances})


def write(facts: Facts, output: Path | str) -> None:
    """Write the page, the frames and the tables into the folder `output`."""
    frames = frames_module.gather(facts)
    sections = []
    for section, title in SECTIONS.items():
        values = section(facts, frames)
        if values is not None:
            name = section.__name__
            sections.append((name, title, Markup(fill(f"{name}.html.j2", **values))))
    page = fill("page.html.j2", facts=facts, alarms=alarms(facts), sections=sections)
    with complete(output) as folder:
        folder.mkdir(parents=True)
        frames.write(folder)
        for kind, text in _for_papers(facts, frames).items():
            (folder / f"results.{kind}").write_text(printable(text), encoding="utf-8")
        (folder / "index.html").write_text(f"{printable(page)}\n", encoding="utf-8")


def _for_papers(facts: Facts, frames: Frames) -> dict[str, str]:
    """Write the table of systems and the table of differences as Markdown and LaTeX.

    Each system has the command that makes its numbers: in LaTeX, in a comment above the table.
    """
    systems = overview(facts, frames)
    if systems.empty:
        return {"md": "", "tex": ""}
    caption = "Means over the queries, times 100; ±: standard deviation over seeds"
    commands = {name: command(facts, name) for name in systems["system"]}
    in_code = [f"`{words}`" for words in commands.values()]
    md = [tables.markdown(systems.assign(command=in_code), caption, plain=["command"])]
    made_by = "".join(f"% {name}: {words}\n" for name, words in commands.items())
    tex = [made_by + tables.latex(systems, caption, best=list(systems)[2:-1])]
    named = frames.comparisons[frames.comparisons["kind"] != EVERY_PAIR]
    if len(named):
        pairs = shown(named)
        pairs.insert(3, "on", named["on"])
        caption = "Differences in points; p and the 95 % interval, which excludes 0 where p < .05, "
        caption += "are corrected after Holm over the pairs with the same reference"
        if (named["kind"] == PLANNED).any():
            caption += ", except in the first row, the planned test"
        md.append(tables.markdown(pairs, caption))
        tex.append(tables.latex(pairs, caption))
    return {"md": "\n".join(md), "tex": "\n".join(tex)}


def write_exhibit(name: str, config: Config, measures: list[Path], output: Path) -> None:
    """Write a table of the paper, such as ``table_stages.csv``, into the folder `output`.

    measures: the files of the systems in its rows.
    """
    table = exhibits.table(name, Facts(config, measures=measures))
    forms = {
        "csv": table.numbers.to_csv(index=False, float_format=frames_module.DIGITS),
        "md": tables.markdown(table.texts(), table.caption),
        "tex": tables.latex(table.texts(), table.caption),
    }
    for kind, text in forms.items():
        write_text(Path(output) / f"{name}.{kind}", text)
