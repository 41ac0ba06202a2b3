"""Write a trained model and its model card in the layout of sentence-transformers."""

from cdmae.job import run
from cdmae.report import card

if __name__ == "__main__":
    run(card.release, snakemake)
