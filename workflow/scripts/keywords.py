"""Write the most important words of each passage of a collection, as queries."""

from cdmae.cli import run_command
from cdmae.importance.keywords import write_keywords

if __name__ == "__main__":
    run_command(write_keywords)
