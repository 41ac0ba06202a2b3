"""The command that writes a finished run's results for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from cdmae.commands.answering import described
from cdmae.commands.configs import ConfigFiles, chosen_collection, configured, existing
from cdmae.config import systems
from cdmae.config.schema import Config
from cdmae.errors import InputError
from cdmae.fields import suggestion
from cdmae.layout import place

if TYPE_CHECKING:
    from cdmae.exporting.folder import Source
    from cdmae.exporting.triples import Training


def export(
    name: Annotated[
        str, Argument(metavar="NAME", help="a retriever, a reranker or an encoder of the config")
    ],
    to: Annotated[str, Option(help="a new or empty folder; with --triples a file, .jsonl")],
    configfile: ConfigFiles = (),
    collection: Annotated[
        str | None, Option(help="the passages to export; default: as for ./run search")
    ] = None,
    onnx: Annotated[
        bool,
        Option(
            "--onnx/--no-onnx",
            help="with the ONNX file, which needs packages that ./run test installs",
        ),
    ] = True,
    triples: Annotated[
        str, Option(help="the columns of sentence-transformers, tevatron or flagembedding")
    ] = "",
    negatives: Annotated[
        int | None,
        Option(
            min=1,
            help="with --triples: the maximum per query; default: one fewer than the stage's group",
        ),
    ] = None,
) -> None:
    """Copy a model of a finished run into a folder with the files that other programs need.

    docs/use.md shows how other programs load the folder: the model's own files and its card,
    onnx/model.onnx (with pooling and normalisation, checked with onnxruntime), passages.parquet
    (docid, vector and text of a retriever's passages), passages.faiss (an exact index of dense
    vectors) or passages.jsonl (impacts of sparse vectors, for Anserini).

    With --triples, the output is instead a file of a system's training queries: their relevant
    passages, mined negatives, and the teacher's scores.
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
    if name not in models:
        raise InputError(f"{name} is not a trained model; {suggestion(name, models)}")
    if triples:
        most = config.stages[config.systems[name].stage].group - 1
        most = most if negatives is None else negatives

        from cdmae.exporting.triples import export as write

        counts = write(output, triples, training_of(config, name), most)
        print(f"{output}: {counts.pop('rows'):,} rows")
        for reason, count in counts.items():
            print(f"{count:,} queries {reason}")
        return
    from cdmae.exporting import target

    target.check(output)
    source = exported(config, name, collection)

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
