"""Pre-train an encoder: sections 3.1 and 3.3, equations 1 to 6 and 9."""

from cdmae import pretrain
from cdmae.command import command

main = command(pretrain.pretrain)

if __name__ == "__main__":
    main()
