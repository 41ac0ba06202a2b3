"""Encode a collection's passages with a retriever into vectors."""

from importlib import import_module

from cdmae.job import run

if __name__ == "__main__":
    module = import_module(f"cdmae.retrieval.{snakemake.params.settings['encoded_by']}")
    run(module.encode_passages, snakemake)
