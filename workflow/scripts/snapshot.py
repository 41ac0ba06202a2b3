"""Take an encoder from the middle of another one's training."""

from cdmae.cli import run_command
from cdmae.pretraining import snapshots

if __name__ == "__main__":
    run_command(snapshots.take)
