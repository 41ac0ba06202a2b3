"""Settings: which values are accepted, and how others are refused."""

import json
import math
from typing import Annotated, Literal

import pytest
from annotated_types import Ge, Gt, Le

from cdmae.config.objectives import AnyEncoder
from cdmae.config.stages import AnyStage
from cdmae.errors import InputError
from cdmae.fields import (
    EMPTY,
    LARGEST,
    REQUIRED,
    Positive,
    Real,
    Whole,
    asdict,
    kinds_of,
    parse,
    rules_of,
    settings,
    tags,
)


@settings
class Recipe:
    name: str = REQUIRED
    window: Annotated[Whole, Ge(2)] = 3
    rate: Annotated[Real, Gt(0), Le(1)] = 0.5
    noise: Annotated[Real, Ge(0)] = 1.0
    flag: bool = True
    kind: Literal["apple", "a"] = "a"
    sizes: tuple[Positive, ...] = (1,)
    splits: dict[str, tuple[str, ...]] = EMPTY

    def __post_init__(self):
        if self.name == "bad":
            raise InputError("name is bad; expected another")


def test_values_have_their_types_and_survive_json():
    typed = {"name": "n", "window": "4", "rate": "1e-3", "flag": "false", "sizes": [2.0]}
    recipe = parse(Recipe, {**typed, "noise": math.inf, "splits": {"c": ["d"]}})
    assert (recipe.window, recipe.rate, recipe.flag, recipe.sizes) == (4, 1e-3, False, (2,))
    plain = json.loads(json.dumps(asdict(recipe)))
    assert plain == asdict(recipe) and parse(Recipe, plain) == recipe


@pytest.mark.parametrize(
    ("key", "value", "begins", "named"),
    [
        ("windw", 2, "top.windw is not", "did you mean window?"),
        ("zzz", 2, "top.zzz is not", "config/README.md"),
        ("name", "bad", "top: name is bad", "another"),
        ("name", 3, "top.name is 3", "text"),
        ("window", 1, "top.window is 1", "2"),
        ("window", 2.5, "top.window is 2.5", "integer"),
        ("window", True, "top.window is true", "number"),
        ("window", None, "top.window is null", "integer"),
        ("window", 2**31, f"top.window is {2**31}", str(LARGEST)),
        ("rate", 0, "top.rate is 0", "greater than 0"),
        ("rate", math.nan, "top.rate is NaN", "0"),
        ("flag", 2, "top.flag is 2", "boolean"),
        ("kind", "aple", "top.kind is aple", "did you mean apple?"),
        ("kind", 5, "top.kind is 5", "apple, a"),
        ("sizes", "one", "top.sizes is one", "a list"),
        ("sizes", [0], "top.sizes[0] is 0", "1"),
        ("splits", {"c": "dev"}, "top.splits.c is dev", "a list"),
        ("splits", ["c"], 'top.splits is ["c"]', "a mapping"),
    ],
)
def test_wrong_values(key, value, begins, named):
    with pytest.raises(InputError) as caught:
        parse(Recipe, {"name": "n", key: value}, "top")
    said = str(caught.value)
    assert said.startswith(begins) and named in said.removeprefix(begins) and "\n" not in said


def test_all_mistakes_are_told_at_once():
    with pytest.raises(InputError) as caught:
        parse(Recipe, {"windw": 2, "rate": 9, "sizes": [0, 1, 0]}, "top")
    assert len(str(caught.value).split("\n")) == 5 and "top.name is missing" in str(caught.value)


@pytest.mark.parametrize("section", [AnyEncoder, AnyStage], ids=["encoders", "stages"])
def test_a_setting_of_several_kinds_is_the_same_in_all(section):
    """So that one default can serve all of them."""
    types = {}
    for kind in kinds_of(section):
        for key, rule in rules_of(kind).items():
            if key not in tags(kind):
                found = (rule.annotation, rule.metadata)
                assert types.setdefault(key, found) == found, key
