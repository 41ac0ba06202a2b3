"""Write a trained model with its card, as others load it."""

from cdmae.cli import command
from cdmae.report import card

command(card.release)
