"""Train a retriever (stages 1, 2 and 3) or a reranker, the teacher of stage 3."""

from importlib import import_module

from cdmae.job import run

if __name__ == "__main__":
    module = import_module(f"cdmae.finetuning.{snakemake.params.settings['kind']}")
    run(module.train, snakemake, name=snakemake.wildcards.system)
