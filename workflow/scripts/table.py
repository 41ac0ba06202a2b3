"""One of the paper's tables, from what was measured here."""

from pathlib import Path

from cdmae.cli import command
from cdmae.report.page import write_exhibit


@command
def main(*, name: str, facts: Path, output: Path):
    """Write the table `name` as CSV, Markdown, LaTeX and HTML into the folder `output`."""
    write_exhibit(name, facts, output)


if __name__ == "__main__":
    main()
