"""Pre-train an encoder (sections 3.1 and 3.3, equations 1 to 6 and 9)."""

from cdmae.job import run
from cdmae.pretraining.trainer import pretrain

if __name__ == "__main__":
    run(pretrain, snakemake, name=snakemake.wildcards.encoder)
