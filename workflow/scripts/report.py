"""Write the report: one page that opens offline, and its numbers as CSV."""

from pathlib import Path

from cdmae.circumstances import circumstances
from cdmae.config.schema import Config
from cdmae.files import write_json
from cdmae.job import run
from cdmae.report import page
from cdmae.report.facts import Facts


def main(*, config: Config, output: Path, record: Path) -> None:
    """Write the page of a run, its numbers, and a record of its config and circumstances."""
    facts = Facts(config, circumstances())
    page.write(facts, output)
    write_json(record, {"config": facts.plain, **facts.circumstances})


if __name__ == "__main__":
    run(main, snakemake)
