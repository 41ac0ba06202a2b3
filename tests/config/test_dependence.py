"""A changed setting re-runs what depends on it and nothing else: every setting of every config that
comes along.

`test_arrival.py` holds which settings an encoder reads against what they do to its weights.
"""

from functools import cache
from pathlib import Path
from typing import Literal, get_args, get_origin

import pytest

from cdmae.collections.sources import ir_datasets, pydocs
from cdmae.config import systems
from cdmae.config.load import DEFAULTS, load
from cdmae.config.reading import gather
from cdmae.config.recipe import OF_A_TEACHER
from cdmae.config.schema import SECTIONS
from cdmae.errors import InputError
from cdmae.fields import Of, kinds_of, rules_of

FILES = Path(__file__).resolve().parents[2] / "config"
RECIPES = [f"recipes/{path.stem}" for path in sorted((FILES / "recipes").glob("*.yaml"))]
CONFIGS = [
    ("config",), ("smoke",), ("full",), ("ablations",), ("objectives",), ("collection",), ("collection-paper",), ("unlabelled",), ("minilm",),
    ("paper", "paper-ablations"), ("paper", *RECIPES),
]  # fmt: skip
OF_STAGES = [("config",), ("paper", "paper-ablations"), ("collection-paper",)]
EDGES = (
    "kind",
    "head",
    "objective",
    "split",
    "generator",
)  # what an entry is, and what it reads, not how


def reads(entry, key):
    """Whether a training depends on one of the settings of encoders or stages."""
    return key in rules_of(entry) and key not in entry.unread


@pytest.fixture(autouse=True)
def settled(monkeypatch):
    """The versions of the packages are looked up once: it takes up to half of the time of a plan."""
    for place, name in ((pydocs.Settings, "version"), (ir_datasets, "installed")):
        monkeypatch.setattr(place, name, cache(getattr(place, name)))


pytestmark = pytest.mark.usefixtures("own_files")


def values_of(names):
    """The values of a config, once for one seed: replicas are entries like others."""
    overlays = [FILES / f"{name}.yaml" for name in names if name != "config"]
    values = gather(FILES / "config.yaml", overlays)
    return {**values, "seed": 42}


def others(hint, value):
    """Other values of a setting, the likeliest to fit first."""
    if get_origin(hint) is Literal:
        found = get_args(hint)
    elif isinstance(value, bool):
        found = [not value]
    elif isinstance(value, str):
        found = [f"{value} and more"]
    elif isinstance(value, tuple):
        found = [(*value, 1)]
    else:
        found = (
            [value / 2 or 0.5]
            if isinstance(value, float)
            else [2 * value or 1, value + 1, value // 2]
        )
    return [other for other in found if other != value]


def edited(values, section, key, hint, value):
    """The config with another default of all entries; None where no other fits, as with the only
    one allowed.
    """
    for other in others(hint, value):
        try:
            return load({**values, section: {**values[section], key: other}})
        except InputError:
            continue
    return None


def trained(config):
    """What every pre-training and every supervised training depends on besides its inputs, as the
    rules say it.
    """
    encoders = {
        name: entry.values() for name, entry in config.encoders.items() if not entry.snapshot_of
    }
    return encoders | {
        ("system", name): config.stages[config.systems[name].stage].values(
            **config.systems[name].teachers()
        )
        for name in systems.trained(config)
    }


def defaulted(values, section):
    """The entries of a section with the settings of their own, snapshots having those of their
    encoder.
    """
    own = {name: set(entry or {}) for name, entry in values.get(section, {}).items()}
    for name, entry in values.get(section, {}).items():
        if (entry or {}).get("snapshot_of"):
            own[name] |= own[entry["snapshot_of"]]
    return own


@pytest.mark.parametrize(
    ("section", "names"),
    [("encoders", names) for names in CONFIGS] + [("stages", names) for names in OF_STAGES],
    ids=lambda value: value if isinstance(value, str) else "+".join(value[:2]),
)
def test_a_setting_of_all_entries_restarts_those_that_read_it(section, names):
    values, tried = values_of(names), 0
    kinds, defaults = kinds_of(SECTIONS[section]), DEFAULTS[section]
    values.setdefault(defaults, {})
    own, before = defaulted(values, section), load(values)
    known, entries = trained(before), getattr(before, section)
    of_stages = {("system", name): before.systems[name] for name in systems.trained(before)}
    for key, rule in {key: rule for kind in kinds for key, rule in rules_of(kind).items()}.items():
        having = [
            name for name in entries if key not in own[name] and key in rules_of(entries[name])
        ]
        if not having:
            continue
        value = values[defaults].get(key, getattr(entries[having[0]], key))
        edges = key in EDGES or any(isinstance(mark, Of) for mark in rule.metadata)
        after = None if edges else edited(values, defaults, key, rule.annotation, value)
        if after is None:
            continue
        tried += 1
        reading = {name for name in having if reads(entries[name], key)}
        if section == "encoders":
            expected = {name for name in reading if not entries[name].snapshot_of}
        else:
            teacher = "teacher" if key in OF_A_TEACHER else "in_batch_teacher"
            taught = key in (*OF_A_TEACHER, "in_batch_weight")
            named = {
                name
                for name, system in of_stages.items()
                if not taught or system.teachers()[teacher]
            }
            expected = {name for name in named if of_stages[name].stage in reading}
        now = trained(after)
        assert {name for name in known if now[name] != known[name]} == expected, key
    assert tried >= 10


def test_collocations_are_read_from_the_counts_and_not_from_the_importance(values):
    """So that neither `pmi` nor `edges` trains a `pmi_span` again; beside importance-aware masks
    both matter.
    """
    values["encoders"] |= {
        "spans": {"decoder_masking": "pmi_span"},
        "both": {"encoder_masking": "pmi_span", "decoder_masking": "importance"},
    }
    rows = systems.encoders(load(values))
    expected = {"spans": "ngrams", "both": "importance", "mae": "", "cdmae": "importance"}
    assert {name: rows[name]["estimate"] for name in ("spans", "both", "mae", "cdmae")} == expected
