"""``python -m cdmae.collections.conversions NAME OPTIONS``: convert a published collection."""

import sys

import typer

from cdmae.cli import call, ending
from cdmae.collections.conversions import boolq, cisi, medquad

app = typer.Typer(add_completion=False, rich_markup_mode=None)
for module in (boolq, cisi, medquad):
    app.command(module.__name__.rpartition(".")[2])(module.main)

if __name__ == "__main__":
    program = "python -m cdmae.collections.conversions"
    ending(lambda: call(app, sys.argv[1:] or ["--help"], program))
