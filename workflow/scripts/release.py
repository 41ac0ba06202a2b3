"""Write a trained model and its model card in the layout of sentence-transformers."""

from cdmae.cli import run_command
from cdmae.report import card

if __name__ == "__main__":
    run_command(card.release)
