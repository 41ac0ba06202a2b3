"""Fill the jinja2 templates of the page's sections and of the figures.

Values are escaped in HTML and SVG, an unknown name is an error, and the functions of
`cdmae.formats` are filters. The style sheets are next to this module; colours.css has a light and a
dark form of each colour.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jinja2
import yaml
from jinja2.environment import TemplateModule
from markupsafe import Markup, escape

from cdmae import formats
from cdmae.report import glossary

FOLDER = Path(__file__).with_name("templates")
COLOURS = {
    name: (light, dark)
    for name, light, dark in re.findall(
        r"--([\w-]+):light-dark\((#\w+),(#\w+)\)",
        (FOLDER.parent / "colours.css").read_text(encoding="utf-8"),
    )
}


def decimal(number: float) -> str:
    """Format a coordinate of a figure."""
    return f"{number:.1f}".removesuffix(".0")


def literal(style: str) -> Markup:
    """Replace the variables in `style` by colours, with the dark ones in a media query.

    Stand-alone figures have no variables.
    """
    light, dark = (
        re.sub(r"var\(--([\w-]+)\)", lambda use, i=i: COLOURS[use[1]][i], style) for i in (0, 1)
    )
    return Markup(f"{light}\n@media(prefers-color-scheme:dark){{{dark}}}")


def breakable(text: str) -> Markup:
    """Allow line breaks after the punctuation of a text.

    The text is processed as `str`, because Python 3.11 would escape tags inserted into `Markup`.
    """
    return Markup(re.sub("([-_/])", r"\1<wbr>", str(escape(text))))


def environment(*folders: Path) -> jinja2.Environment:
    """Make an environment for the templates in `folders`, with this module's filters."""
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader([*folders, FOLDER, FOLDER.parent]),
        autoescape=jinja2.select_autoescape(["html.j2", "svg.j2"]),
        undefined=jinja2.StrictUndefined,
    )
    made.filters |= {name: value for name, value in vars(formats).items() if callable(value)}
    made.filters |= {
        "breakable": breakable,
        "decimal": decimal,
        "literal": literal,
        "shown_term": glossary.shown,
        "term_of": glossary.term_of,
        "yaml": lambda value, width=80: yaml.safe_dump(
            value, sort_keys=False, allow_unicode=True, width=width
        ),
    }
    made.globals["TERMS"] = glossary.TERMS
    # true unless missing or nan
    made.tests["known"] = lambda number: number is not None and number == number
    return made


_ENVIRONMENT = environment()


def fill(name: str, /, **values: Any) -> TemplateModule:
    """Fill a template: ``str()`` of the result is the text; the variables are attributes."""
    return _ENVIRONMENT.get_template(name).make_module(values)


def phrase(name: str, macro: str, /, **values: Any) -> str:
    """Return the output of a plain-text macro as one line, for a cell of a table."""
    text = getattr(_ENVIRONMENT.get_template(name).module, macro)(**values)
    return re.sub(r"[ \n]+", " ", text).strip(" ")
