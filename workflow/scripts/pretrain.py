"""Pre-train an encoder (sections 3.1 and 3.3, equations 1 to 6 and 9)."""

from cdmae.cli import run_command
from cdmae.pretraining import trainer

if __name__ == "__main__":
    run_command(trainer.pretrain)
