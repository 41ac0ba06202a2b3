"""An encoder as it was in the middle of another one's training."""

from cdmae.cli import command
from cdmae.pretraining import snapshots

main = command(snapshots.take)

if __name__ == "__main__":
    main()
