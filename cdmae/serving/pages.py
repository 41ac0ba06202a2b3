"""The templates of the server's pages."""

from pathlib import Path

from cdmae.report.templates import environment

FOLDER = Path(__file__).with_name("templates")
TEMPLATES = environment(FOLDER)
