"""Fill jinja2 templates: the page of the report, model cards, and the server's pages.

Values are escaped in HTML, an unknown name is an error, and the functions of `cdmae.formats` and
`cdmae.report.notation` are filters. The style sheets are next to this module; colours.css has a
light and a dark form of each colour.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jinja2
import yaml

from cdmae import formats
from cdmae.report import notation

FOLDER = Path(__file__).with_name("templates")


def environment(*folders: Path) -> jinja2.Environment:
    """Make an environment for the templates in `folders`, with this module's filters."""
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader([*folders, FOLDER, FOLDER.parent]),
        autoescape=jinja2.select_autoescape(["html.j2"]),
        undefined=jinja2.StrictUndefined,
    )
    named = vars(formats) | vars(notation)
    made.filters |= {name: value for name, value in named.items() if callable(value)}
    made.filters["yaml"] = lambda value, width=80: yaml.safe_dump(
        value, sort_keys=False, allow_unicode=True, width=width
    )
    # true unless missing or nan
    made.tests["known"] = lambda number: number is not None and number == number
    return made


_ENVIRONMENT = environment()


def fill(name: str, /, **values: Any) -> str:
    """Fill a template."""
    return _ENVIRONMENT.get_template(name).render(values)
