"""An encoder as it was in the middle of another one's training."""

from cdmae import snapshots
from cdmae.command import command

main = command(snapshots.take)

if __name__ == "__main__":
    main()
