"""Write the most important words of each passage of a collection, as queries."""

from cdmae.importance.keywords import write_keywords
from cdmae.job import run

if __name__ == "__main__":
    run(write_keywords, snakemake)
