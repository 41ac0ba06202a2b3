"""Write one of the paper's tables from the results of this run."""

from pathlib import Path

from cdmae.job import run
from cdmae.report import page

if __name__ == "__main__":
    run(
        page.write_exhibit,
        snakemake,
        name=snakemake.wildcards.exhibit,
        output=Path(snakemake.output[0]).parent,
    )
