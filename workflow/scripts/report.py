"""Write the report: one page that opens offline, and its numbers as CSV."""

from pathlib import Path
from typing import Any

from cdmae.circumstances import circumstances
from cdmae.files import write_json
from cdmae.job import run
from cdmae.report import page


def main(*, facts: dict[str, Any], output: Path, record: Path) -> None:
    """Write the page of the facts, its numbers, and a record of the facts."""
    facts |= circumstances()
    page.build(facts, output)
    write_json(record, facts)


if __name__ == "__main__":
    run(main, snakemake)
