"""Settings: which values are accepted, and how several mistakes are reported."""

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


def test_values_have_their_types_and_survive_json():
    typed = {"name": "n", "window": "4", "rate": "1e-3", "flag": "false", "sizes": [2.0]}
    recipe = parse(Recipe, {**typed, "noise": math.inf, "splits": {"c": ["d"]}})
    assert (recipe.window, recipe.rate, recipe.flag, recipe.sizes) == (4, 1e-3, False, (2,))
    plain = json.loads(json.dumps(asdict(recipe)))
    assert plain == asdict(recipe) and parse(Recipe, plain) == recipe


def test_all_mistakes_are_reported_at_once():
    with pytest.raises(InputError) as caught:
        parse(Recipe, {"windw": 2, "rate": 9, "sizes": [0, 1, 0]}, "top")
    keys = [line.split(" ")[0] for line in str(caught.value).split("\n")]
    assert sorted(keys) == ["top.name", "top.rate", "top.sizes[0]", "top.sizes[2]", "top.windw"]


@pytest.mark.parametrize("section", [AnyEncoder, AnyStage], ids=["encoders", "stages"])
def test_a_setting_of_several_kinds_is_the_same_in_all(section):
    """So that one default can serve all of them."""
    types = {}
    for kind in kinds_of(section):
        for key, rule in rules_of(kind).items():
            if key not in tags(kind):
                found = (rule.annotation, rule.metadata)
                assert types.setdefault(key, found) == found, key
