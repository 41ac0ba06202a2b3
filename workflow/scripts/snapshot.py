"""Copy the weights that another encoder's pre-training saved at an earlier step."""

from cdmae.job import run
from cdmae.pretraining import snapshots

if __name__ == "__main__":
    run(snapshots.take, snakemake, name=snakemake.wildcards.encoder)
