"""The command that writes a finished run's results for other programs."""

from __future__ import annotations

from pathlib import Path

from cdmae.config import systems
from cdmae.errors import InputError
from cdmae.fields import suggestion
from cdmae.layout import place
from workflow.commands.configs import configured, existing


def export(
    *name: str,
    to: str,
    triples: str = "",
    negatives: int | None = None,
    configfile: list[str] = (),  # type: ignore[assignment]
) -> None:
    """Write the training data of a finished run for other programs.

    The name is a retriever or a reranker of the config. With --triples, a file gets its training
    queries with their relevant passages, its mined negatives, and its teacher's scores.

      --to          the file to write
      --triples     the columns: sentence-transformers, tevatron or flagembedding
      --negatives   the most negatives per query; default: one fewer than the stage's group
      --configfile  config files as for a run, which overlay config/config.yaml

    Examples:
      ./run export cdmae-stage3 --triples tevatron --to triples.jsonl
    """
    output = Path(to).resolve()  # before the working directory changes
    config = configured(configfile)
    trained = systems.trained(config)
    if len(name) != 1:
        raise InputError(f"export needs the name of one system; allowed: {', '.join(trained)}")
    if name[0] not in trained:
        raise InputError(f"{name[0]} is not a trained system; {suggestion(name[0], trained)}")
    system = config.systems[name[0]]
    stage = config.stages[system.stage]
    most = stage.group - 1 if negatives is None else negatives
    if most < 1:
        raise InputError(f"--negatives is {most}; allowed: from 1")

    from cdmae.exporting.triples import Training
    from cdmae.exporting.triples import export as write

    collection, split = systems.trains_on(config, name[0])

    def mined(other: str) -> Path:
        names = {"system": other, "collection": collection, "split": split}
        return Path(existing(place(config.results, "negatives", **names)))

    teacher = None
    if system.teacher and config.systems[system.teacher].scores_draws:
        scored = systems.taught_like(config, name[0])
        teacher = Path(existing(place(config.results, "teacher", system=scored)))
    elif system.teacher:
        teacher = mined(system.teacher)
    training = Training(
        collection=Path(existing(place(config.results, "collection", collection=collection))),
        split=split,
        negatives=mined(system.negatives),
        teacher=teacher,
        depth=stage.depth,
        margin=stage.margin,
    )
    counts = write(output, triples, training, most)
    print(f"{output}: {counts.pop('rows'):,} rows")
    for reason, count in counts.items():
        print(f"{count:,} queries {reason}")
