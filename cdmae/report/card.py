"""Write the model card of a trained system, and the folder with the card and the trained files."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pandas as pd
from huggingface_hub import EvalResult, ModelCardData

from cdmae.config.pretrained import HUB_NAME, divided
from cdmae.evaluation.per_query import read_measures
from cdmae.files import complete, link, read_json
from cdmae.formats import count
from cdmae.report.notation import markdown, measure_name, points, without_folders
from cdmae.report.templates import fill

README = "README.md"
# the parts of the facts with settings that the card lists
PARTS = ("start", "before", "importance", "encoder", "stage", "system", "training")
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
    cards: dict[str, dict[str, Any]],
    trained: list[Path],
    measures: list[Path],
    models: list[Path],
) -> None:
    """Write the folder of every system in `cards`: its card, and every file of its model.

    cards: the facts of each system. trained, models: the folders to read and to write, one per
    system. measures: the files of all systems, named after them.

    `cdmae.files.link` links the weights instead of copying them. Hidden files are omitted, because
    Snakemake keeps a folder's time in a hidden file, which two folders must not share.
    """
    measured = {path.stem: read_measures(path) for path in measures}
    left_out = shutil.ignore_patterns(".*", README)
    for (name, facts), model, output in zip(cards.items(), trained, models, strict=True):
        about = {collection: read_json(path) for collection, path in facts["about"].items()}
        known = facts | {"about": about, "training": read_json(model / "about.json")}
        beside = {other: measured[other] for other in facts["beside"]}
        described = read_json(model / "cdmae.json")
        text = card(known, measured[name], described, str(output), beside)
        with complete(output) as folder:
            shutil.copytree(model, folder, copy_function=link, ignore=left_out)
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
    collections = {}
    for name, source in facts["collections"].items():
        collections[name] = {**source, "record": facts["about"].get(name, {})}
    settings = {part: facts[part] for part in PARTS if facts.get(part)}
    form = _form(described)
    means = measures.groupby(["collection", "split", "measure"], sort=False)["value"].mean()
    named = facts | described | {"collections": collections}
    text = fill(
        "card.md.j2",
        **named,
        form=form,
        place=json.dumps(without_folders(place), ensure_ascii=False),
        measures=_results({"this model": measures, **(others or {})}),
        others=list(others or {}),
        front_matter=_front_matter(facts, base_model, means, form).to_yaml(),
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
    targets = ["collection", "split"]
    rows = pd.concat([frame.assign(system=name) for name, frame in systems.items()])
    rows = rows.merge(systems["this model"][[*targets, "measure"]].drop_duplicates())
    means = rows.pivot_table("value", targets, ["system", "measure"], sort=False)
    shown = means.map(points).stack("system", future_stack=True).rename(columns=measure_name)
    queries = rows.groupby([*targets, "system"])["query_id"].nunique()
    shown.insert(0, "queries", queries.map(count))
    shown = shown.rename(index=markdown).reset_index()
    sides = ["left"] * 3 + ["right"] * (shown.shape[1] - 3)
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
        tags=[library, *tags, "passage-retrieval", "cdmae"],
        base_model=divided(base_model)[0] if at_hub else None,
        license=facts["licence"] or None,
        language=facts["languages"] or None,
        model_name=facts["name"] if results else None,  # a part of the results
        eval_results=results or None,
    )
