"""Join the runs of a system that were made for ranges of the queries."""

from cdmae.cli import run_command
from cdmae.retrieval import by_queries

if __name__ == "__main__":
    run_command(by_queries.join_runs)
