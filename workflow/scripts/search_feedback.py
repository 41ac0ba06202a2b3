"""Write a dense system's runs with vector pseudo-relevance feedback."""

from cdmae.cli import run_command
from cdmae.retrieval import feedback

if __name__ == "__main__":
    run_command(feedback.write_runs)
