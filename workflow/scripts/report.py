"""Write tables, figures and one page that opens offline."""

from cdmae.cli import command
from cdmae.report import page

command(page.build)
