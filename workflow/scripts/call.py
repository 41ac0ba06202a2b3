"""Call the function that ``params.call`` names, such as ``cdmae.retrieval.bm25.write_runs``."""

from importlib import import_module

from cdmae.job import run

if __name__ == "__main__":
    module, _, name = snakemake.params.call.rpartition(".")
    run(getattr(import_module(module), name), snakemake)
