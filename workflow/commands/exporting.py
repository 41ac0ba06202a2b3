"""The commands that write a finished run's results for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from cdmae.config import systems
from cdmae.config.schema import Config
from cdmae.errors import InputError
from cdmae.fields import suggestion
from cdmae.layout import place
from workflow.commands.answering import described
from workflow.commands.configs import chosen_collection, configured, existing

if TYPE_CHECKING:
    from cdmae.exporting.folder import Source
    from cdmae.exporting.triples import Training


def export(
    *name: str,
    to: str,
    configfile: list[str] = (),  # type: ignore[assignment]
    collection: str | None = None,
    onnx: bool = True,
    triples: str = "",
    negatives: int | None = None,
) -> None:
    """Copy a model of a finished run into a folder with the files that other programs need.

    The name is a retriever, a reranker or an encoder of the config. docs/use.md shows how other
    programs load the folder. In addition to the model's own files and its card, it contains:

      onnx/model.onnx   the model with its pooling and normalisation, checked with onnxruntime
      passages.parquet  docid, vector and text of a retriever's passages
      passages.faiss    an exact index of dense vectors
      passages.jsonl    impacts of sparse vectors, for Anserini

    With --triples, the output is instead a file of a system's training queries: their relevant
    passages, mined negatives, and the teacher's scores.

      --to          a new or empty folder; with --triples a file, .jsonl
      --collection  the passages to export; default: as for ./run search
      --no-onnx     without the ONNX file, which needs packages that ./run test installs
      --triples     the columns of sentence-transformers, tevatron or flagembedding
      --negatives   with --triples: the maximum per query; default: one fewer than the stage's group
      --configfile  config files as for a run, which overlay config/config.yaml

    Examples:
      ./run export cdmae-stage3 --to retriever
      ./run export mae --to encoder --no-onnx
      ./run export cdmae-stage3 --triples tevatron --to triples.jsonl
    """
    if negatives is not None and not triples:
        raise InputError("--negatives has no effect without --triples; add --triples")
    if triples and (collection or not onnx):
        raise InputError(
            "--collection and --no-onnx have no effect with --triples; remove them or --triples"
        )
    output = Path(to).resolve()  # before the working directory changes
    config = configured(configfile)
    models = systems.trained(config) + ([] if triples else list(config.encoders))
    if len(name) != 1:
        raise InputError(f"export needs the name of one model; allowed: {', '.join(models)}")
    if name[0] not in models:
        raise InputError(f"{name[0]} is not a trained model; {suggestion(name[0], models)}")
    if triples:
        most = config.stages[config.systems[name[0]].stage].group - 1
        most = most if negatives is None else negatives
        if most < 1:
            raise InputError(f"--negatives is {most}; allowed: from 1")

        from cdmae.exporting.triples import export as write

        counts = write(output, triples, training_of(config, name[0]), most)
        print(f"{output}: {counts.pop('rows'):,} rows")
        for reason, count in counts.items():
            print(f"{count:,} queries {reason}")
        return
    from cdmae.exporting import target

    target.check(output)
    source = exported(config, name[0], collection)

    from cdmae.exporting import folder
    from cdmae.plan import machine

    files = folder.export(source, output, threads=machine.here().cores, onnx=onnx)
    print("\n".join(f"{output / file}" for file in files))


def exported(config: Config, name: str, collection: str | None) -> Source:
    """Return the folders that an export of a system or an encoder reads."""
    from cdmae.exporting.folder import Source

    collection = chosen_collection(config, collection)
    passages = existing(place(config.results, "collection", collection=collection))
    if name in config.encoders:
        return Source(existing(place(config.results, "encoder", encoder=name)), "encoder", passages)
    kind = config.systems[name].kind
    vectors = described(config, name, collection)["vectors"] if kind == "retriever" else ""
    return Source(existing(place(config.results, "model", system=name)), kind, passages, vectors)


def training_of(config: Config, name: str) -> Training:
    """Return the files and settings that determine a system's training groups."""
    from cdmae.exporting.triples import Training

    system = config.systems[name]
    stage = config.stages[system.stage]
    collection, split = systems.trains_on(config, name)

    def mined(other: str) -> Path:
        names = {"system": other, "collection": collection, "split": split}
        return Path(existing(place(config.results, "negatives", **names)))

    teacher = None
    if system.teacher and config.systems[system.teacher].scores_draws:
        scored = systems.taught_like(config, name)
        teacher = Path(existing(place(config.results, "teacher", system=scored)))
    elif system.teacher:
        teacher = mined(system.teacher)
    return Training(
        collection=Path(existing(place(config.results, "collection", collection=collection))),
        split=split,
        negatives=mined(system.negatives),
        teacher=teacher,
        depth=stage.depth,
        margin=stage.margin,
        train_queries=stage.train_queries,
        labels=stage.labels,
        temperature=stage.teacher_temperature,
    )
