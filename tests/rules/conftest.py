"""Two configs whose jobs are planned once: the small one of all tests, and one that uses every rule."""

import pytest
from made_up import make_model
from planned import plan

from cdmae.config.load import load


class Jobs(dict):
    """The planned jobs of a config, by rule and wildcards; nobody may change them."""

    config = None


PLANNED = {}


@pytest.fixture
def whole(values):
    """The jobs of the small config."""
    values["systems"]["foreign"]["head"] = "sparse"
    if "whole" not in PLANNED:
        PLANNED["whole"] = plan(values)
    return PLANNED["whole"]


@pytest.fixture
def grown_values(values, tmp_path):
    """The small config with entries of every other kind; the user's files are in a folder."""
    grow(values, tmp_path)
    return values


@pytest.fixture
def grown(grown_values, whole):
    """The jobs of this config."""
    if "grown" not in PLANNED:
        targets = ["out/trec/bm25/docs.dev.run", "out/trec/docs.dev.qrels"]
        targets += ["out/collections/written/about.json", "out/encoders/spans", "table_stages"]
        PLANNED["grown"] = Jobs(plan(grown_values, "all", *targets))
        PLANNED["grown"].config = load(grown_values)
    return PLANNED["grown"]


def grow(values, folder):
    """Add entries of every kind to the small config."""
    run, texts, table = folder / "theirs.run", folder / "texts.tsv", folder / "table.jsonl"
    run.touch()
    texts.touch()
    table.write_text('{"query": "a", "positive": "b"}\n')
    writer = make_model(folder / "t5", is_encoder_decoder=True, vocab_size=9, d_model=512)
    models = {name: make_model(folder / name) for name in ("start", "generator", "model")}
    (folder / "model/.snakemake_timestamp").touch()
    runs = {"docs": dict.fromkeys(("train", "dev", "test"), str(run)), "other": {"test": str(run)}}
    docs, one, three = values["collections"]["docs"], *map(values["systems"].get, ("one", "three"))
    stages = values["stages"]
    own = stages["stage3"] | {"random_negatives": 0}
    expanded = {"source": "expanded", "texts": str(texts)}
    values["collections"] |= {
        "more-docs": expanded | {"of": docs},
        "more-other": expanded | {"of": {"source": "toy"}},
        "mine": {"source": "pairs", "path": str(table)},
        "written": {"source": "expanded", "of": docs, "model": writer},
        "made": {"source": "pseudo", "of": docs},
    }
    values["starts"]["given"] = {"checkpoint": models["start"]}
    values["report"] = {"methods": {"CDMAE, stage 1": "one"}}
    stages |= {
        "own": own,
        "labelled": own | {"split": "raw", "labels": 0.9},
        "on-made": stages["stage1"] | {"collection": "made"},
        "other-alpha": stages["stage3"] | {"alpha": 2.0},
        "other-depth": stages["stage3"] | {"depth": 21},
        "unified": stages["stage1"] | {"head": "unified", "temperature": 1},
    }
    values["encoders"] |= {
        "general": {"collection": "other"},
        "both": {"after": "general"},
        "spans": {"decoder_masking": "pmi_span"},
        "simlm": {"objective": "simlm", "start": "given", "generator": models["generator"]},
    }
    values["systems"] |= {
        "t5": {"kind": "bm25", "passages": {"docs": "more-docs", "other": "more-other"}},
        "sums": {"kind": "fusion", "of": ["bm25", "one"], "method": "convex"},
        "mixed": {"kind": "fusion", "of": ["bm25", "one"], "tuned_on": ["docs", "dev"]},
        "theirs": {"kind": "run", "runs": runs},
        "ours": {"kind": "external", "model": models["model"]},
        "unified": one | {"stage": "unified"},
        "half": {"kind": "head", "of": "unified", "uses": "sparse"},
        "by-made": one | {"stage": "on-made"},
        "by-mixed": three | {"negatives": "mixed"},
        "by-foreign": three | {"negatives": "foreign"},
        "by-labels": three | {"stage": "labelled"},
        "small": values["systems"]["cross"] | {"teacher": "cross", "reranks": "three"},
        "in-batch": three | {"in_batch_teacher": "one"},
        "joint": three | {"teacher": "", "joint_teacher": "cross"},
        "both": one | {"encoder": "both"},
        "other-alpha": three | {"stage": "other-alpha"},
        "other-depth": three | {"stage": "other-depth"},
    }
    for teacher in ("one", "sums", "theirs"):
        values["systems"][f"by-{teacher}"] = three | {"teacher": teacher, "stage": "own"}
