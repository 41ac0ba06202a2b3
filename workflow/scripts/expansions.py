"""Write texts for a collection's passages by a sequence-to-sequence model."""

from cdmae.job import run
from cdmae.retrieval.expansion import write_texts

if __name__ == "__main__":
    run(write_texts, snakemake)
