"""Write one of the paper's tables or figures from the results of this run."""

from cdmae.cli import run_command
from cdmae.report import page

if __name__ == "__main__":
    run_command(page.write_exhibit)
