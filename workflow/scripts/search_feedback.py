"""Write the runs of a dense system with vector feedback."""

from cdmae.cli import command
from cdmae.retrieval import feedback

command(feedback.write_runs)
