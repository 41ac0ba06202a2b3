"""The command that writes a finished run's results for other programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from cdmae.commands.answering import described
from cdmae.commands.configs import ConfigFiles, chosen_collection, configured, existing
from cdmae.config import systems
from cdmae.config.schema import Config
from cdmae.errors import InputError
from cdmae.fields import suggestion
from cdmae.layout import place


def export(
    name: Annotated[
        str, Argument(metavar="NAME", help="a retriever, a reranker or an encoder of the config")
    ],
    to: Annotated[str, Option(help="a new or empty folder; with --triples a new file, .jsonl")],
    configfile: ConfigFiles = (),
    collection: Annotated[
        str | None, Option(help="the passages to export; default: as for ./run search")
    ] = None,
    onnx: Annotated[
        bool,
        Option(
            "--onnx/--no-onnx",
            help="with the ONNX file, for which ./run installs further packages",
        ),
    ] = True,
    triples: Annotated[
        int, Option(min=0, help="write training queries with this number of mined negatives")
    ] = 0,
) -> None:
    """Copy a model of a finished run into a folder with the files that other programs need.

    docs/use.md shows how other programs load the folder: the model's own files and its card (an
    encoder has no card), onnx/model.onnx (with pooling and normalisation, checked with
    onnxruntime), passages.parquet (docid, vector and text of a retriever's passages) and
    passages.faiss (an exact index of dense vectors).

    With --triples N, the output is instead a file of a system's training queries in the columns of
    sentence-transformers: their relevant passages, N mined negatives, and the teacher's scores.
    """
    if triples and (collection or not onnx):
        raise InputError(
            "--collection and --no-onnx have no effect with --triples; remove them or --triples"
        )
    output = Path(to).expanduser().resolve()  # before the working directory changes
    config = configured(configfile)
    models = systems.trained(config) + ([] if triples else list(config.encoders))
    if name not in models:
        raise InputError(f"{name} is not a trained model; {suggestion(name, models)}")
    is_empty = not triples and output.is_dir() and not any(output.iterdir())
    if output.exists() and not is_empty:
        words = "a new file" if triples else "a new or empty folder"
        raise InputError(f"--to is {output}, which exists; expected {words}")
    if triples:
        from cdmae.exporting.triples import export as write

        rows, short = write(output, triples, **training_of(config, name))
        print(f"{output}: {rows:,} rows; queries with fewer than {triples} negatives: {short:,}")
        return
    source = exported(config, name, collection)

    from cdmae.exporting import folder
    from cdmae.plan import machine

    files = folder.export(output, **source, threads=machine.here().cores, onnx=onnx)
    print("\n".join(f"{output / file}" for file in files))


def exported(config: Config, name: str, collection: str | None) -> dict[str, str]:
    """Return the folders that an export of a system or an encoder reads, for `folder.export`."""
    collection = chosen_collection(config, collection)
    passages = existing(place(config.results, "collection", collection=collection))
    if name in config.encoders:
        model = existing(place(config.results, "encoder", encoder=name))
        return {"folder": model, "kind": "encoder", "collection": passages}
    kind = config.systems[name].kind
    vectors = described(config, name, collection)["vectors"] if kind == "retriever" else ""
    model = existing(place(config.results, "model", system=name))
    return {"folder": model, "kind": kind, "collection": passages, "vectors": vectors}


def training_of(config: Config, name: str) -> dict[str, Any]:
    """Return what selects a system's training groups, for `triples.export`."""
    from cdmae.finetuning.groups import Drawing
    from cdmae.finetuning.labels import Labels

    system = config.systems[name]
    stage = config.stages[system.stage]
    collection, split = systems.trains_on(config, name)

    def mined(other: str) -> Path:
        names = {"system": other, "collection": collection, "split": split}
        return Path(existing(place(config.results, "negatives", **names)))

    teacher = None
    if system.teacher and config.systems[system.teacher].kind == "reranker":
        scored = systems.taught_like(config, name)
        teacher = Path(existing(place(config.results, "teacher", system=scored)))
    elif system.teacher:
        teacher = mined(system.teacher)
    # one mined negative is enough here; rows with fewer than wanted are left out and counted
    chosen = {"split": split, "group": 2, "random_negatives": 0, "seed": 0}
    labels = Labels(teacher, stage.labels, stage.teacher_temperature) if stage.labels else None
    return {
        "collection": Path(existing(place(config.results, "collection", collection=collection))),
        "negatives": mined(system.negatives),
        "drawing": Drawing.of(stage.drawn() | chosen),
        "teacher": teacher,
        "labels": labels,
    }
