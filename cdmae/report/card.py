"""The model card of a trained system, and the folder that carries it: the trained files, hard-linked, and README.md."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from cdmae.errors import InputError
from cdmae.evaluation.tables import read_measures
from cdmae.files import complete, link, read_json
from cdmae.formats import count, duration, listed, measure_name, plural, points, short_count

README = "README.md"
USES = {"start": "word-pieces", "encoder": "pre-training", "stage": "fine-tuning"}  # of a collection, by who names it
MASKED = {  # what the decoder of a masked auto-encoder restores
    "importance": "those that average mutual information calls important",
    "inverse_frequency": "rare ones before frequent ones",
    "idf": "those that few passages have before others",
    "span": "in contiguous spans",
    "pmi_span": "with collocations as units",
}
OBJECTIVES = {  # other pre-trainings, with the work they follow
    "retromae": "RetroMAE's enhanced decoding (Xiao et al. 2022)",
    "dupmae": "DupMAE's enhanced decoding and bags of words (Xiao et al. 2023)",
    "bowdpr": "bag-of-words prediction from the [CLS] vector (Ma et al. 2024)",
    "condenser": "Condenser's head over late [CLS] and early token states (Gao and Callan 2021)",
    "cocondenser": "coCondenser's head and contrast of neighbouring spans (Gao and Callan 2022)",
    "simlm": "SimLM's replaced language modelling (Wang et al. 2023)",
    "cotmae": "CoT-MAE's decoding of the neighbouring span (Wu et al. 2023)",
    "master": "MASTER's decoders of the passage and of the neighbouring span (Zhou et al. 2022)",
}

RETRIEVER = """
```python
from sentence_transformers import SentenceTransformer

model = SentenceTransformer("{place}")  # the folder of this card; needs sentence-transformers 6
queries = model.encode_query(["how do I join two lists?"])
passages = model.encode_document(["chain.from_iterable takes its inputs from one iterable."])
scores = model.similarity(queries, passages)  # dot products: the larger, the closer
```

Queries are cut at {query_length} word-pieces and passages at {passage_length}, as in training. A passage with a title
is the title, a space and the text. The same vectors without sentence-transformers:

```python
import torch
from transformers import AutoModel, AutoTokenizer

tokenizer = AutoTokenizer.from_pretrained("{place}")
encoder = AutoModel.from_pretrained("{place}").eval()


def encode(texts, length):
    batch = tokenizer(texts, padding=True, truncation=True, max_length=length, return_tensors="pt")
    with torch.no_grad():
        return encoder(**batch).last_hidden_state[:, 0]  # the [CLS] vector, not normalised
```
"""

RERANKER = """
```python
from sentence_transformers import CrossEncoder

model = CrossEncoder("{place}")  # the folder of this card; pairs are cut at {max_length} word-pieces
query = "how do I join two lists?"
passages = ["chain.from_iterable takes its inputs from one iterable.", "str.join concatenates strings."]
scores = model.predict([(query, passage) for passage in passages])  # raw logits: the larger, the more relevant
```

A passage with a title is the title, a space and the text.
"""

MIXED = (
    " On a CPU they were taken in float32, like the scores of the code above; on a GPU that computes in bfloat16 they "
    "were taken in mixed precision, like the training, and the scores differ from those in the third digit."
)


def release(model: Path | str, measures: Path | str, facts: dict[str, Any], output: Path | str) -> None:
    """Write the folder `output`: every file of `model` as a hard link (a copy on another file system), and the card.

    Hidden files stay behind: Snakemake keeps a folder's time in one, and two folders must not share it.
    """
    model = Path(model)
    facts = facts | {"about": {name: read_json(path) for name, path in facts["about"].items()}}
    facts["training"] = read_json(model / "about.json") if (model / "about.json").exists() else {}
    text = card(facts, read_measures(measures), read_lengths(model), str(output))
    with complete(output) as folder:
        for path in sorted(model.rglob("*")):
            place = folder / path.relative_to(model)
            if path.is_dir():
                place.mkdir(parents=True, exist_ok=True)
            elif path.relative_to(model) != Path(README) and not path.name.startswith("."):
                place.parent.mkdir(parents=True, exist_ok=True)
                link(path, place)
        (folder / README).write_text(text, encoding="utf-8")


def read_lengths(model: Path) -> dict[str, Any]:
    """The kind and the lengths of a trained model."""
    if not (model / "cdmae.json").exists():
        raise InputError(f"{model} holds no trained model: it has no cdmae.json; delete the folder and train it again")
    return read_json(model / "cdmae.json")


def card(facts: dict[str, Any], measures: pd.DataFrame, lengths: dict[str, Any], place: str) -> str:
    """The text of README.md: front matter for the hub, then what it is, how to use it, on what, how well, limits.

    facts: `Graph.card` (name, system, stage, encoder, start, importance, collections; perhaps the encoders `before`
    the encoder, by name), with the contents of about.json
    under `about` per collection and under `training`. measures: per query; lengths: the model's cdmae.json; place:
    the folder that the code names.
    """
    reranker = lengths.get("kind") == "reranker"
    usage = (RERANKER if reranker else RETRIEVER).format(place=place, **lengths).strip()
    parts = [
        front_matter(facts, measures, reranker=reranker),
        f"# {facts['name']}\n\n{_what(facts, reranker)}",
        f"## Use\n\n{usage}",
        f"## Measures\n\n{_measures(measures, lengths.get('precision', ''))}",
        f"## Data\n\n{_data(facts)}",
        f"## Training\n\n{_training(facts)}",
        f"## Limits\n\n{_limits(facts)}",
    ]
    return "\n\n".join(parts) + "\n"


def front_matter(facts: dict[str, Any], measures: pd.DataFrame, *, reranker: bool) -> str:
    """The YAML that model hubs read."""
    tags = ["cross-encoder", "reranker"] if reranker else ["dense-retrieval", "feature-extraction"]
    values: dict[str, Any] = {
        "library_name": "sentence-transformers",
        "pipeline_tag": "text-ranking" if reranker else "sentence-similarity",
        "tags": ["sentence-transformers", *tags, "passage-retrieval", "masked-auto-encoder", "cdmae"],
    }
    checkpoint = facts["start"].get("checkpoint", "")
    if checkpoint and not Path(checkpoint).exists():
        values["base_model"] = checkpoint
    results = _results(measures)
    if results:
        values["model-index"] = [{"name": facts["name"], "results": results}]
    return f"---\n{yaml.safe_dump(values, sort_keys=False, allow_unicode=True)}---"


def _results(measures: pd.DataFrame) -> list[dict[str, Any]]:
    found = []
    for (collection, split), rows in measures.groupby(["collection", "split"], sort=False):
        means = rows.groupby("measure", sort=False)["value"].mean()
        metrics = [
            {"type": name, "value": round(float(value), 4), "name": measure_name(str(name))}
            for name, value in means.items()
        ]
        dataset = {"type": str(collection), "name": str(collection), "split": str(split)}
        task = {"type": "text-retrieval", "name": "Passage retrieval"}  # each its own: YAML would refer to a shared one
        found.append({"task": task, "dataset": dataset, "metrics": metrics})
    return found


def _what(facts: dict[str, Any], reranker: bool) -> str:
    encoder = facts["encoder"]
    kind = (
        "A reranker, or cross-encoder: query and passage in, one score out."
        if reranker
        else "A dense retriever: queries and passages become vectors, the [CLS] ones, and are compared by dot product."
    )
    if encoder.get("objective") == "none":
        return f"{kind} Its encoder was not pre-trained further."
    objective = encoder.get("objective", "mae")
    if objective != "mae":
        return f"{kind} Its encoder was pre-trained with {OBJECTIVES[objective]}."
    chosen = MASKED.get(encoder.get("decoder_masking", ""), "words at random")
    return (
        f"{kind} Its encoder was pre-trained as a masked auto-encoder: a shallow decoder restores masked words from "
        f"the [CLS] vector, here {chosen} (Li et al. 2023, *Challenging Decoder helps in Masked Auto-Encoder "
        "Pre-training for Dense Passage Retrieval*)."
    )


def _measures(measures: pd.DataFrame, precision: str) -> str:
    names = list(dict.fromkeys(measures["measure"]))
    rows = []
    for (collection, split), found in measures.groupby(["collection", "split"], sort=False):
        means = found.groupby("measure")["value"].mean()
        values = [points(float(means[name])) if name in means else "" for name in names]
        rows.append([str(collection), str(split), count(found["query_id"].nunique()), *values])
    frame = pd.DataFrame(rows, columns=["collection", "split", "queries", *map(measure_name, names)])
    sides = ["left", "left", *["right"] * (len(names) + 1)]
    table = frame.to_markdown(index=False, colalign=sides, disable_numparse=True)
    note = MIXED if precision in ("bf16", "auto") else ""
    return f"{table}\n\nMeans over the queries, times 100; MRR@10 is the mean of RR@10.{note}"


def _data(facts: dict[str, Any]) -> str:
    """Each collection: what it was used for, its settings, the versions of what it was made from, and its counts."""
    parts = []
    for name, values in facts["collections"].items():
        uses = [use for part, use in USES.items() if facts[part].get("collection") == name]
        uses += ["pre-training before that"] * any(part.get("collection") == name for part in _before(facts))
        text = f"**{name}**, for {listed(uses)}: {_pairs(values)}."
        about = dict(facts["about"].get(name) or {})
        versions = about.pop("versions", None)
        if versions:
            text += f" Made from {_pairs(versions)}."
        parts.append(f"{text}\n\n```yaml\n{_yaml(about)}```" if about else text)
    return "\n\n".join(parts)


def _before(facts: dict[str, Any]) -> list[dict[str, Any]]:
    """The pre-trainings that the encoder's goes on from."""
    return list(facts.get("before", {}).values())


def _training(facts: dict[str, Any]) -> str:
    system, record = facts["system"], facts["training"]
    given = [f"{key} of {system[key]}" for key in ("negatives", "teacher") if system.get(key)]
    text = f"Stage {system.get('stage')}" + (f", with {listed(given)}" if given else "")
    if {"steps", "queries", "seconds", "parameters"} <= record.keys():
        text += (
            f": {plural(record['steps'], 'step')} over {plural(record['queries'], 'query')} in "
            f"{duration(record['seconds'])}, {short_count(record['parameters'])} parameters"
        )
    parts = {name: facts[name] for name in ("start", "before", "importance", "encoder", "stage") if facts.get(name)}
    return f"{text}. All settings:\n\n```yaml\n{_yaml(parts)}```"


def _limits(facts: dict[str, Any]) -> str:
    collection = facts["stage"].get("collection")
    return (
        f"Trained once, with seed {facts['stage'].get('seed')}; a difference of a few tenths of a point between two "
        f"such models may be the seed's. It has seen queries of {collection} only: on other kinds of text expect less, "
        "and measure before use. Texts longer than the lengths above are cut. It ranks by what the training data calls "
        "relevant, with that data's gaps and biases."
    )


def _pairs(values: dict[str, Any]) -> str:
    shown = {key: value for key, value in values.items() if value not in ("", None)}
    return ", ".join(
        f"{key} {str(value).lower() if isinstance(value, bool) else value}" for key, value in shown.items()
    )


def _yaml(value: Any) -> str:
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True, default_flow_style=False)
