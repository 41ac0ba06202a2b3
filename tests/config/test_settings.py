"""Settings: which values are accepted, and the form in which others are refused."""

import json
import math
from typing import Annotated, Literal

import pytest
from annotated_types import Ge, Gt, Le
from pydantic import Field

from cdmae import fields
from cdmae.config.objectives import AnyEncoder
from cdmae.config.stages import AnyStage
from cdmae.errors import InputError
from cdmae.fields import (
    EMPTY,
    LARGEST,
    REQUIRED,
    Mapped,
    Name,
    Natural,
    Of,
    Positive,
    Real,
    Whole,
    asdict,
    kind_of,
    kinds_of,
    named,
    parse,
    rules_of,
    settings,
    tags_of,
)


@settings
class Recipe:
    name: str = REQUIRED
    """What it is called."""
    window: Annotated[Whole, Ge(2)] = 3
    rate: Annotated[Real, Gt(0), Le(1)] = 0.5
    noise: Annotated[Real, Ge(0)] = 1.0
    flag: bool = True
    kind: Literal["apple", "a"] = "a"
    tags: tuple[str, ...] = ("t",)
    sizes: tuple[Positive, ...] = (1,)
    splits: Annotated[dict[str, tuple[str, ...]], Mapped] = EMPTY
    grades: dict[str, dict[str, Whole]] = EMPTY

    def __post_init__(self):
        if self.name == "bad":
            raise InputError("name is bad; expected another")


def refusal(**values):
    with pytest.raises(InputError) as caught:
        parse(Recipe, values, "top")
    return str(caught.value)


def test_defaults_and_values():
    given = {"name": "n", "rate": 1, "tags": ["u", "v"], "splits": None, "noise": math.inf}
    recipe = parse(Recipe, given, "top")
    assert recipe == Recipe(name="n", rate=1.0, tags=("u", "v"), noise=math.inf)
    assert isinstance(recipe.rate, float)
    typed = {"name": "n", "window": "4", "rate": "1e-3", "flag": "false", "sizes": [2.0]}
    assert parse(Recipe, typed) == Recipe(name="n", window=4, rate=1e-3, flag=False, sizes=(2,))


@pytest.mark.parametrize(
    ("key", "value", "begins", "named"),
    [
        ("windw", 2, "top.windw is not", "did you mean window?"),
        ("zzz", 2, "top.zzz is not", "name, window"),
        ("name", "bad", "top: name is bad", "another"),
        ("name", 3, "top.name is 3", "text"),
        ("window", 1, "top.window is 1", "2"),
        ("window", 2.5, "top.window is 2.5", "integer"),
        ("window", True, "top.window is true", "number"),
        ("window", None, "top.window is null", "integer"),
        ("window", 2**31, f"top.window is {2**31}", str(LARGEST)),
        ("rate", 0, "top.rate is 0", "above 0"),
        ("rate", math.nan, "top.rate is NaN", "0"),
        ("rate", math.inf, "top.rate is Infinity", "1"),
        ("rate", False, "top.rate is false", "number"),
        ("noise", -1, "top.noise is -1", "0"),
        ("flag", 2, "top.flag is 2", "true or false"),
        ("kind", "aple", "top.kind is aple", "did you mean apple?"),
        ("kind", 5, "top.kind is 5", "apple, a"),
        ("tags", "one", "top.tags is one", "a list"),
        ("tags", ["a", 1], "top.tags[1] is 1", "text"),
        ("sizes", [0], "top.sizes[0] is 0", "1"),
        ("splits", {"c": "dev"}, "top.splits.c is dev", "a list"),
        ("splits", ["c"], 'top.splits is ["c"]', "a mapping"),
        ("grades", {"c": {"d": 1.5}}, "top.grades.c.d is 1.5", "integer"),
    ],
)
def test_wrong_values(key, value, begins, named):
    said = refusal(**{"name": "n", key: value})
    assert said.startswith(begins) and named in said.removeprefix(begins) and "\n" not in said


def test_all_mistakes_are_told_at_once_and_missing_keys_when_the_others_are_right():
    assert len(refusal(windw=2, rate=9).split("\n")) == 2
    assert len(refusal(sizes=[0, 1, 0]).split("\n")) == 2
    assert refusal() == "top.name is missing: What it is called."


def test_plain_values_survive_json():
    recipe = parse(Recipe, {"name": "n", "noise": math.inf, "splits": {"c": ["d"]}})
    plain = json.loads(json.dumps(asdict(recipe)))
    assert plain == asdict(recipe) and plain["tags"] == ["t"]
    assert parse(Recipe, plain) == recipe


def test_long_values_are_shortened_but_for_paths():
    assert len(fields.show("x" * 1000)) == 60
    assert len(fields.show({"key": "a/b" * 1000})) == 60
    for path in ("/home/" + "x" * 1000, "a/" * 1000, "folder of mine/\t" + "x" * 1000):
        assert fields.show(path).strip('"').replace("\\t", "\t") == path


# --- classes of several kinds ---------------------------------------------------------------------


@settings
class Fruit:
    name: Annotated[Name, Of("fruits")]
    """What it is called."""
    size: Positive = 1


@settings
class Apple(Fruit):
    kind: Literal["apple"] = "apple"
    colour: Literal["red", "green"] = "red"


@settings
class Grape(Fruit):
    kind: Literal["grape"] = "grape"
    into: Literal["juice"] = "juice"
    of: Annotated[tuple[str, ...], Of("fruits")] = ()


@settings
class Wine(Grape):
    into: Literal["wine"] = "wine"
    years: Natural = 0


AnyGrape = Annotated[Grape | Wine, Field(discriminator="into")]
AnyFruit = Annotated[Apple | AnyGrape, Field(discriminator="kind")]
Fruits = dict[str, AnyFruit]


def test_a_union_tells_its_kinds_apart_and_one_in_it_its_own():
    assert kinds_of(AnyFruit) == [Apple, Grape, Wine] and tags_of(AnyFruit) == ["kind", "into"]
    assert kind_of(AnyFruit, {"kind": "grape", "into": "wine"}) is Wine
    assert kind_of(AnyFruit, {"kind": "apple", "into": "wine"}) is Apple
    assert kind_of(AnyFruit, {"kind": "grape"}) is None
    assert parse(Fruits, {"a": {"kind": "grape", "into": "wine", "name": "n"}}) == {
        "a": Wine(name="n")
    }
    assert named(Grape(name="n", of=("b", "c"))) == [
        (("name",), "n", "fruits"), (("of", 0), "b", "fruits"), (("of", 1), "c", "fruits")
    ]  # fmt: skip
    assert rules_of(Wine)["name"].description == "What it is called."


@pytest.mark.parametrize(
    ("values", "begins", "named"),
    [
        ({"kind": "apple", "name": "n", "size": 0}, "x.size is 0", "1"),
        ({"kind": "apple", "name": "n", "sise": 0}, "x.sise is not", "did you mean size?"),
        ({"kind": "apple", "name": ""}, "x.name is missing", ""),
        ({"kind": "apple"}, "x.name is missing", "What it is called"),
        ({"kind": "pear"}, "x.kind is pear", "apple, grape"),
        ({}, "x.kind is missing", "apple, grape"),
        (None, "x is null", "a mapping"),
        ("apple", "x is apple", "a mapping"),
        ({"kind": "apple", "name": "n", "years": 3}, "x.years is not", "of grape wine"),
        ({"kind": "grape", "into": "jam", "name": "n"}, "x.into is jam", "juice, wine"),
        ({"kind": "grape", "into": "wine", "name": "n", "years": -1}, "x.years is -1", "0"),
        ({"kind": "grape", "into": "juice", "name": "n", "years": 1}, "x.years is not", "wine"),
    ],
)
def test_what_does_not_fit_a_kind(values, begins, named):
    with pytest.raises(InputError) as caught:
        parse(Fruits, {"x": values})
    said = str(caught.value)
    assert said.startswith(begins) and named in said


@pytest.mark.parametrize("section", [AnyEncoder, AnyStage], ids=["encoders", "stages"])
def test_a_setting_of_several_kinds_is_the_same_in_all(section):
    """So that one default can serve all of them."""
    types = {}
    for kind in kinds_of(section):
        for key, rule in rules_of(kind).items():
            if key not in tags_of(section):
                found = (rule.annotation, rule.metadata)
                assert types.setdefault(key, found) == found, key


def test_a_name_where_there_is_none_to_choose_and_an_empty_one_are_shown_as_such():
    assert fields.suggestion("none", []) == "there is nothing to choose from"
    assert fields.suggestion("x", ["", "sympy"]) == 'expected "", sympy'
