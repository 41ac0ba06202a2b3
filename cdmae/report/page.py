"""The page: one HTML file with its style, its figures and its few lines of script inside. It loads nothing."""

from __future__ import annotations

from collections.abc import Sequence

from cdmae.report import palette
from cdmae.report.markup import Markup, join, tag
from cdmae.report.sections import Section
from cdmae.report.tables import Table

# follows the system's scheme until the button is pressed; where storage is forbidden the choice lasts for the page
SCRIPT = """
const root = document.documentElement, button = document.getElementById("theme"), key = "cdmae-theme";
const system = matchMedia("(prefers-color-scheme: dark)");
const dark = () => root.dataset.theme ? root.dataset.theme === "dark" : system.matches;
const name = () => { button.textContent = dark() ? "Light" : "Dark"; };
try { root.dataset.theme = localStorage.getItem(key) || ""; } catch {}
button.hidden = false;
button.onclick = () => {
  root.dataset.theme = dark() ? "light" : "dark";
  try { localStorage.setItem(key, root.dataset.theme); } catch {}
  name();
};
system.addEventListener("change", name);
name();
"""


def page(title: str, kicker: Sequence[str], sections: Sequence[Section]) -> str:
    """The whole document; the first section has no heading of its own, it is the answer."""
    links = [tag("a", section.short, href=f"#{section.id}") for section in sections[1:]]
    about = tag("p", join([tag("span", part) for part in kicker], " \N{MIDDLE DOT} "), class_="kicker")
    button = tag("button", "Dark", id="theme", type="button", hidden=True, title="Switch between light and dark")
    parts = [
        tag("section", tag("h2", section.title) if index else None, section.body, id=section.id)
        for index, section in enumerate(sections)
    ]
    footer = tag(
        "footer",
        "All tables are in tables/ beside this page as CSV, Markdown, LaTeX and HTML, all figures in figures/.",
    )
    header = tag("header", tag("h1", title), button, about, tag("nav", links, aria_label="Sections"))
    body = [header, tag("main", parts), footer]
    return _document(title, Markup("".join(body)) + tag("script", Markup(SCRIPT)))


def table_page(table: Table) -> str:
    """A table as a page of its own."""
    return _document(table.caption, tag("main", table.html()))


def _document(title: str, body: str) -> str:
    style = palette.variables() + palette.style_sheet("page") + palette.style_sheet("figure")
    head = [
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", title),
        tag("link", rel="icon", href="data:,"),
        tag("style", Markup(style)),
    ]
    return "<!doctype html>\n" + tag("html", tag("head", head), tag("body", Markup(body)), lang="en") + "\n"
