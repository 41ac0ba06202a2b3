"""Tables, figures and one page that opens offline."""

from pathlib import Path

from cdmae.cli import command
from cdmae.report.page import build


@command
def main(*, facts: Path, output: Path):
    """Write the report on what the JSON file `facts` points to into the folder `output`."""
    build(facts, output)


if __name__ == "__main__":
    main()
