"""Take the weights that the training of another encoder kept at an earlier step."""

from cdmae.cli import run_command
from cdmae.pretraining import snapshots

if __name__ == "__main__":
    run_command(snapshots.take)
