"""Write the runs of a dense system with vector feedback."""

from cdmae.cli import run_command
from cdmae.retrieval import feedback

if __name__ == "__main__":
    run_command(feedback.write_runs)
