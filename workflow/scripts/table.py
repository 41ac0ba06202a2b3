"""Write one of the paper's tables or figures, from what was measured here."""

from cdmae.cli import command
from cdmae.report import page

command(page.write_exhibit)
