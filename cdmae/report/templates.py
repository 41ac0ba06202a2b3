"""Put numbers into words: the jinja2 templates of the page, one for each section.

HTML is escaped, an unknown name is an error, and the functions of `cdmae.formats` are filters.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import jinja2
from jinja2.environment import TemplateModule
from markupsafe import Markup, escape

from cdmae import formats

FOLDER = Path(__file__).with_name("templates")
_ENVIRONMENT = jinja2.Environment(
    loader=jinja2.FileSystemLoader(FOLDER),
    autoescape=jinja2.select_autoescape(["html.j2"]),
    undefined=jinja2.StrictUndefined,
)
_ENVIRONMENT.filters |= {name: value for name, value in vars(formats).items() if callable(value)}
_ENVIRONMENT.filters["breakable"] = lambda text: Markup(re.sub("([-_/])", r"\1<wbr>", escape(text)))
_ENVIRONMENT.tests["known"] = lambda number: number is not None and number == number  # neither missing nor nan


def fill(name: str, /, **values: Any) -> TemplateModule:
    """Fill a template: ``str()`` of the result is its text, and what it sets are attributes."""
    return _ENVIRONMENT.get_template(name).make_module(values)


def phrase(name: str, macro: str, /, **values: Any) -> str:
    """Fill a macro of a template of plain text, in one line: the words of a table's cell."""
    text = getattr(_ENVIRONMENT.get_template(name).module, macro)(**values)
    return re.sub(r"[ \n]+", " ", text).strip(" ")
