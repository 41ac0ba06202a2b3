"""``python -m cdmae.collections.conversions NAME OPTIONS``: convert a published collection."""

import sys

from cdmae.cli import run_command
from cdmae.collections.conversions import boolq, cisi, medquad
from cdmae.errors import InputError

CONVERSIONS = {"boolq": boolq.main, "cisi": cisi.main, "medquad": medquad.main}


def unknown() -> None:
    """Refuse the name of a collection."""
    raise InputError(f"name a collection; allowed: {', '.join(CONVERSIONS)}")


if __name__ == "__main__":
    run_command(CONVERSIONS.get(next(iter(sys.argv[1:]), ""), unknown), sys.argv[2:])
