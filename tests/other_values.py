"""Other values of settings, for tests that each setting arrives where it acts.

A new setting is tested without an entry here. The tables hold what the fields of pydantic cannot
tell.
"""

from collections.abc import Iterator
from typing import Any, Literal, get_args, get_origin

from pydantic.fields import FieldInfo

from cdmae.fields import Of, rules_of

# the settings beside which a setting acts, in both trainings
BESIDE = {
    "texts": {"encoder_masking": "uniform", "decoder_masking": "uniform"},
    "epochs": {"steps": 0},
    "labels": {"random_negatives": 0},
    "target": {"pieces": "own"},
    "cls_dimensions": {"match": "equal"},
}
# another value, where those that follow from the type are refused or mean the same
VALUES = {
    "precision": "bf16",
    "split": "again",
    "train_queries": 12,
    "labels": 0.1,
    "vocabulary": 120,
    "early_layers": 2,
    "model": "another/model",
    "tuned_on": ["docs", "dev"],
    "measures": ["RR@5"],
    "relevant": {"docs": {"dev": 2}},
    "lengths": {"docs": 64},
}
# settings that decide neither weights nor a request; other tests try them
ELSEWHERE = ("seed", "checkpoint", "once")
REMEDY = (
    "pass the setting on to where it acts, or add it to a table of tests/other_values.py: BESIDE, "
    "VALUES or ELSEWHERE"
)


def tried(kind: Any) -> dict[str, FieldInfo]:
    """The settings of a class, or of an entry, that may have another value.

    Names of other entries are left out: their files reach a job as its inputs.
    """
    return {
        key: rule
        for key, rule in rules_of(kind).items()
        if not (get_origin(rule.annotation) is Literal and len(get_args(rule.annotation)) == 1)
        and not any(isinstance(mark, Of) for mark in rule.metadata)
        and key not in ELSEWHERE
    }


def others(key: str, rule: FieldInfo, value: Any, values: dict[str, Any]) -> Iterator[Any]:
    """Other values of a setting; not all are allowed.

    values: by key, those that are to be tried instead.
    """
    if key in values:
        found = [values[key]]
    elif get_origin(rule.annotation) is Literal:
        found = get_args(rule.annotation)
    elif isinstance(value, bool):
        found = [not value]
    elif isinstance(value, int | float):
        found = map(type(value), (value / 2, 2 * value, 0.5, 1, 2, 4, 32))
    else:
        found = [f"{value}word: "] if isinstance(value, str) else []
    return (other for other in found if other != value)
