"""Write one of the paper's tables from the results of this run."""

from pathlib import Path
from typing import Any

from cdmae.job import run
from cdmae.report import page


def main(*, exhibit: str, facts: dict[str, Any], output: Path) -> None:
    """Write a table, whose name is `exhibit`; the table of latencies is measured now."""
    if exhibit == "table_latency":
        from cdmae.evaluation import latency  # with torch, which no other table needs

        facts["latency"] = latency.measure()
    page.write_exhibit(exhibit, facts, output)


if __name__ == "__main__":
    run(main, snakemake)
