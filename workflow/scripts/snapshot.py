"""Take an encoder from the middle of another one's training."""

from cdmae.cli import command
from cdmae.pretraining import snapshots

command(snapshots.take)
