"""Write the model card of a trained system, and the folder with the card and the trained files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
from huggingface_hub import EvalResult, ModelCardData

from cdmae.config.pretrained import HUB_NAME, divided
from cdmae.errors import InputError
from cdmae.evaluation.per_query import read_measures
from cdmae.files import complete, link, read_json
from cdmae.formats import count, markdown, measure_name, points, without_folders
from cdmae.report.templates import fill

README = "README.md"
# the uses of a collection, by the part of the facts that refers to it
USES = {"start": "word-pieces", "encoder": "pre-training", "stage": "fine-tuning"}
# defaults for retrievers whose cdmae.json does not record these settings
POOLED = {
    "head": "dense", "pooling": "cls", "similarity": "dot", "pieces": "all", "target": "ranking",
}  # fmt: skip
PARTS = ("start", "before", "importance", "encoder", "stage")  # the parts whose settings are listed
# the library that loads a model, and the tags at the hub, by the form of the model
TAGS = {
    "reranker": ("sentence-transformers", ["cross-encoder", "reranker"]),
    "deepct": ("transformers", ["sparse", "deepct"]),
    "unicoil": ("transformers", ["sparse", "unicoil"]),
    "sparse": ("sentence-transformers", ["sparse-encoder", "sparse", "splade"]),
    "unified": ("sentence-transformers", ["sparse-encoder", "sparse", "dense-retrieval"]),
    "coil": ("transformers", ["multi-vector", "coil"]),
    "colbert": ("sentence-transformers", ["multi-vector", "colbert"]),
    "dense": ("sentence-transformers", ["dense-retrieval"]),
}


def release(
    model: Path | str,
    measures: Path | str,
    facts: dict[str, Any],
    output: Path | str,
    beside: list[Path] | None = None,
) -> None:
    """Write the folder `output`: the card and every file of `model`.

    beside: the measures of other systems on the same queries, such as BM25; the name of a file is
    the name of the system.

    `cdmae.files.link` links the weights instead of copying them. Hidden files are omitted, because
    Snakemake keeps a folder's time in a hidden file, which two folders must not share.
    """
    model = Path(model)
    if not (model / "cdmae.json").exists():
        raise InputError(
            f"{model} contains no trained model: cdmae.json is missing; "
            "delete the folder and train it again"
        )
    about = {name: read_json(path) for name, path in facts["about"].items()}
    facts = facts | {"about": about}
    facts["training"] = read_json(model / "about.json") if (model / "about.json").exists() else {}
    described = read_json(model / "cdmae.json")
    others = {path.stem: read_measures(path) for path in beside or ()}
    text = card(facts, read_measures(measures), described, str(output), others)
    with complete(output) as folder:
        for path in sorted(model.rglob("*")):
            place = folder / path.relative_to(model)
            if path.is_dir():
                place.mkdir(parents=True, exist_ok=True)
            elif path.relative_to(model) != Path(README) and not path.name.startswith("."):
                place.parent.mkdir(parents=True, exist_ok=True)
                link(path, place)
        (folder / README).write_text(text, encoding="utf-8")


def card(
    facts: dict[str, Any],
    measures: pd.DataFrame,
    described: dict[str, Any],
    place: str,
    others: dict[str, pd.DataFrame] | None = None,
) -> str:
    """Return the text of README.md, the model card.

    The card has front matter for the hub, a description, usage, training data, results and limits.

    facts: the mapping from `cdmae.report.sources.card`: name, licence, languages, system, stage,
    encoder, start, importance, collections, and the encoders `before` the encoder, if any. `about`
    and `training` contain the about.json of each collection and of the training. measures: one row
    per query, as in `others`, by system. described: the contents of the model's cdmae.json. place:
    the folder in the example code. Because cards are published, they show only the last parts of
    local paths.
    """
    base_model = facts["start"].get("checkpoint", "")
    facts = without_folders(facts)
    described = {**POOLED, **described}
    training = facts["training"]
    before = [encoder.get("collection") for encoder in facts.get("before", {}).values()]
    uses = {}
    for name in facts["collections"]:
        uses[name] = [use for part, use in USES.items() if facts[part].get("collection") == name]
        uses[name] += ["pre-training before that"] if name in before else []
    settings = {part: facts[part] for part in PARTS if facts.get(part)}
    commit = training.get("commits", {}).get("checkpoint")
    if commit:
        settings["start"] = {**facts["start"], "commit": commit}
    form = _form(described)
    means = measures.groupby(["collection", "split", "measure"], sort=False)["value"].mean()
    text = fill(
        "card.md.j2",
        **facts,
        **described,
        form=form,
        uses=uses,
        place=json.dumps(without_folders(place), ensure_ascii=False),
        measures=_results({"this model": measures, **(others or {})}),
        others=list(others or {}),
        front_matter=_front_matter(facts, base_model, means, form).to_yaml(),
        taken=training
        if {"steps", "queries", "seconds", "parameters"} <= training.keys()
        else None,
        settings=settings,
    )
    return f"{text}\n"


def _form(described: dict[str, Any]) -> str:
    """Name the form of a model, a key of `TAGS`."""
    if described["kind"] == "reranker":
        return "reranker"
    if described["pieces"] == "own":
        return "deepct" if described["target"] == "recall" else "unicoil"
    if described["head"] == "multi":
        return "coil" if described["match"] == "equal" else "colbert"
    return described["head"]


def _results(systems: dict[str, pd.DataFrame]) -> str:
    """Make a Markdown table: a row per collection, split and system, and a column per measure."""
    own, *_ = systems.values()
    rows = pd.concat([frame.assign(system=name) for name, frame in systems.items()])
    keys = ["collection", "split", "system"]
    means = rows.groupby([*keys, "measure"], sort=False)["value"].mean()
    queries = rows.groupby(keys, sort=False)["query_id"].nunique()
    targets = own.groupby(keys[:2], sort=False).groups
    order = [(*target, system) for target in targets for system in systems]
    shown = means.map(points).unstack("measure", fill_value="")
    shown = shown.reindex(
        index=pd.MultiIndex.from_tuples(order, names=keys), columns=own["measure"].unique()
    )
    shown = shown.rename(columns=measure_name)
    shown.insert(0, "queries", queries.map(count))
    sides = [*["left"] * len(keys), *["right"] * shown.shape[1]]
    shown = shown.rename(index=markdown).reset_index()
    return shown.to_markdown(index=False, colalign=sides, disable_numparse=True)


def _front_matter(
    facts: dict[str, Any], base_model: str, means: pd.Series, form: str
) -> ModelCardData:
    """Return the metadata for model hubs; a `base_model` that is a local folder is omitted."""
    at_hub = HUB_NAME.fullmatch(base_model) and not Path(base_model).exists()
    library, tags = TAGS[form]
    task = {"reranker": "text-ranking", "dense": "sentence-similarity"}
    results = [
        EvalResult(
            task_type="text-retrieval",
            task_name="Passage retrieval",
            dataset_type=collection,
            dataset_name=collection,
            dataset_split=split,
            metric_type=measure,
            metric_name=measure_name(measure),
            metric_value=round(float(mean), 4),
        )
        for (collection, split, measure), mean in means.items()
    ]
    return ModelCardData(
        library_name=library,
        pipeline_tag=task.get(form, "feature-extraction"),
        tags=[library, *tags, "passage-retrieval", "masked-auto-encoder", "cdmae"],
        base_model=divided(base_model)[0] if at_hub else None,
        license=facts["licence"] or None,
        language=facts["languages"] or None,
        model_name=facts["name"] if results else None,  # a part of the results
        eval_results=results or None,
    )
