"""Copy the weights that another encoder's pre-training saved at an earlier step."""

from cdmae.cli import run_command
from cdmae.pretraining import snapshots

if __name__ == "__main__":
    run_command(snapshots.take)
