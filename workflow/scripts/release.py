"""Write a trained model with its card, as others load it."""

from cdmae.cli import run_command
from cdmae.report import card

if __name__ == "__main__":
    run_command(card.release)
