"""Pre-train an encoder: sections 3.1 and 3.3, equations 1 to 6 and 9."""

from pathlib import Path

from cdmae.command import command
from cdmae.config import Encoder, Start
from cdmae.pretrain import pretrain


@command
def main(
    *,
    name: str,
    settings: Encoder,
    start: Start,
    tokenizer: Path,
    seed: int,
    state: Path,
    output: Path,
    tokens: Path | None = None,
    importance: Path | None = None,
    threads: int = 1,
):
    """Make the encoder `name`; a training that was stopped goes on from its state."""
    pretrain(
        name=name,
        settings=settings,
        start=start,
        tokenizer=tokenizer,
        tokens=tokens,
        importance=importance,
        seed=seed,
        threads=threads,
        state=state,
        output=output,
    )


if __name__ == "__main__":
    main()
