"""Write the report: tables, figures, and one page that opens offline."""

from cdmae.cli import run_command
from cdmae.report import page

if __name__ == "__main__":
    run_command(page.build)
