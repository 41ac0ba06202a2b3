"""Call the function that ``params.call`` names, such as ``cdmae.retrieval.bm25.write_runs``."""

from cdmae.job import run

if __name__ == "__main__":
    run(snakemake.params.call, snakemake)
