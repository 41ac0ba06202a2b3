"""Settings: which values pydantic is told to accept, and the one sentence with which a value is
refused.
"""

import json
import math
from typing import Annotated, Literal

import pytest
from pydantic import Field

from cdmae import fields
from cdmae.config.objectives import AnyEncoder
from cdmae.config.stages import AnyStage
from cdmae.errors import InputError
from cdmae.fields import (
    Mapped,
    Name,
    asdict,
    kind_of,
    kinds_of,
    named,
    parse,
    rules_of,
    setting,
    settings,
    some_of,
    tags_of,
)


@settings
class Recipe:
    name: str = setting(meaning="what it is called")
    window: int = setting(3, meaning="words", unit="words", source="3.2", low=2)
    rate: float = setting(0.5, meaning="rate", above=0, high=1)
    noise: float = setting(1.0, meaning="noise", low=0, high=math.inf)
    flag: bool = setting(True, meaning="switch")
    kind: Literal["apple", "a"] = setting("a", meaning="kind")
    tags: tuple[str, ...] = setting(("t",), meaning="tags")
    sizes: tuple[Annotated[int, Field(strict=True, ge=1)], ...] = setting((1,), meaning="sizes")
    splits: Annotated[dict[str, tuple[str, ...]], Mapped] = setting({}, meaning="per name")
    grades: dict[str, dict[str, Annotated[int, Field(strict=True)]]] = setting(
        {}, meaning="per name"
    )

    def __post_init__(self):
        if self.name == "bad":
            raise InputError("name is bad; allowed: another")


def refusal(**values):
    with pytest.raises(InputError) as caught:
        parse(Recipe, values, "top")
    return str(caught.value)


def test_defaults_and_values():
    recipe = parse(
        Recipe,
        {"name": "n", "rate": 1, "tags": ["u", "v"], "splits": None, "noise": math.inf},
        "top",
    )
    assert recipe == Recipe(name="n", rate=1.0, tags=("u", "v"), noise=math.inf)
    assert isinstance(recipe.rate, float)


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        ("windw", 2, "top.windw is not a setting; did you mean window?"),
        ("zzz", 2, "top.zzz is not a setting; allowed: name, window"),
        ("name", "bad", "top: name is bad; allowed: another"),
        ("name", 3, "top.name is 3; allowed: text (in a config file and in quotation marks if it looks like a number)"),
        ("window", 1, "top.window is 1; allowed: a whole number from 2"),
        ("window", 2.0, "top.window is 2.0; allowed: a whole number from 2"),
        ("window", "4", 'top.window is "4"; allowed: a whole number from 2, without quotation marks'),
        ("window", True, "top.window is true; allowed: a whole number from 2"),
        ("window", None, "top.window is null; allowed: a whole number from 2"),

        ("rate", 0, "top.rate is 0; allowed: a number above 0 to 1"),
        ("rate", math.nan, "top.rate is NaN; allowed: a number above 0 to 1"),
        ("rate", math.inf, "top.rate is Infinity; allowed: a number above 0 to 1"),
        ("rate", False, "top.rate is false; allowed: a number above 0 to 1"),
        ("rate", 10**400, f"top.rate is 1{'0' * 56}...; allowed: a number above 0 to 1"),
        ("noise", -1, "top.noise is -1; allowed: a number from 0 to infinity"),
        ("noise", math.nan, "top.noise is NaN; allowed: a number from 0 to infinity"),
        ("window", 2**31, "top.window is 2147483648; allowed: a whole number from 2 to 2147483647"),
        ("flag", "true", 'top.flag is "true"; allowed: true or false'),
        ("flag", 1, "top.flag is 1; allowed: true or false"),
        ("kind", "aple", "top.kind is aple; did you mean apple?"),
        ("kind", 5, "top.kind is 5; allowed: apple, a"),
        ("tags", "one", "top.tags is one; allowed: a list, each element text (in a config file and in quotation marks"),
        ("tags", ["a", 1], "top.tags[1] is 1; allowed: text (in a config file and in quotation marks if it looks like a number)"),
        ("sizes", [0], "top.sizes[0] is 0; allowed: a whole number from 1"),
        ("sizes", [True], "top.sizes[0] is true; allowed: a whole number from 1"),
        ("splits", {"c": "dev"}, "top.splits.c is dev; allowed: a list, each element text"),
        ("splits", ["c"], 'top.splits is ["c"]; allowed: a mapping of keys to values'),
        ("grades", {"c": {"d": 1.5}}, "top.grades.c.d is 1.5; allowed: a whole number"),
        ("grades", {"c": 1}, "top.grades.c is 1; allowed: a mapping of keys to values"),
    ],
)  # fmt: skip
def test_wrong_values(key, value, sentence):
    assert refusal(**{"name": "n", key: value}).startswith(sentence)


def test_all_mistakes_are_told_at_once_and_missing_keys_when_the_others_are_right():
    assert sorted(refusal(windw=2, rate=9).split("\n")) == [
        "top.rate is 9; allowed: a number above 0 to 1", "top.windw is not a setting; did you mean window?",
    ]  # fmt: skip
    assert refusal(sizes=[0, 1, 0]).count("\n") == 1
    assert refusal() == "top.name is missing: what it is called"


def test_plain_values_survive_json():
    recipe = parse(Recipe, {"name": "n", "noise": math.inf, "splits": {"c": ["d"]}})
    plain = json.loads(json.dumps(asdict(recipe)))
    assert plain == asdict(recipe) and plain["tags"] == ["t"]
    assert parse(Recipe, plain) == recipe


def test_bounds_have_all_their_digits():
    assert (
        fields.allowed({"type": "integer", "minimum": 1, "maximum": 2**20})
        == "a whole number from 1 to 1048576"
    )


def test_long_values_are_shortened_but_for_paths():
    assert len(fields.show("x" * 1000)) == 60
    assert len(fields.show({"key": "a/b" * 1000})) == 60
    for path in ("/home/" + "x" * 1000, "a/" * 1000, "folder of mine/\t" + "x" * 1000):
        assert fields.show(path).strip('"').replace("\\t", "\t") == path


# --- classes of several kinds ---------------------------------------------------------------------


@settings
class Fruit:
    name: Name = setting(meaning="what it is called", names="fruits")
    size: int = setting(1, meaning="size", low=1)


@settings
class Apple(Fruit):
    kind: Literal["apple"] = setting("apple", meaning="an apple")
    colour: Literal["red", "green"] = setting("red", meaning="colour")


@settings
class Grape(Fruit):
    kind: Literal["grape"] = setting("grape", meaning="grapes")
    into: Literal["juice"] = setting("juice", meaning="juice")
    of: tuple[str, ...] = setting((), meaning="which ones", names="fruits")


@settings
class Wine(Grape):
    into: Literal["wine"] = setting("wine", meaning="wine")
    years: int = setting(0, meaning="years", low=0)


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


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"kind": "apple", "name": "n", "size": 0}, "x.size is 0; allowed: a whole number from 1"),
        ({"kind": "apple", "name": "n", "sise": 0}, "x.sise is not a setting; did you mean size?"),
        ({"kind": "apple", "name": ""}, "x.name is missing; kind apple needs name"),
        ({"kind": "apple"}, "x.name is missing; kind apple needs name"),
        ({"kind": "pear"}, "x.kind is pear; allowed: apple, grape"),
        ({}, "x.kind is missing; allowed: apple, grape"),
        (None, "x is empty; allowed: a mapping of its settings"),
        ("apple", "x is apple; allowed: a mapping of keys to values"),
        ({"kind": "apple", "name": "n", "years": 3}, "x.years is not a setting of kind apple; of the settings that only "
         "some kinds have, it has colour"),
        ({"kind": "grape", "into": "jam", "name": "n"}, "x.into is jam; allowed: juice, wine"),
        ({"kind": "grape", "into": "wine", "name": "n", "years": -1}, "x.years is -1; allowed: a whole number from 0"),
        ({"kind": "grape", "into": "juice", "name": "n", "years": 1}, "x.years is not a setting of into juice"),
    ],
)  # fmt: skip
def test_what_does_not_fit_a_kind(values, sentence):
    with pytest.raises(InputError) as caught:
        parse(Fruits, {"x": values})
    assert str(caught.value).startswith(sentence)


def test_what_is_given_to_several_kinds_may_have_the_settings_of_all():
    parse(some_of(AnyFruit), {"colour": "green", "years": 3, "kind": "grape", "into": "wine"})
    with pytest.raises(InputError, match="x.colour is blue; allowed: red, green"):
        parse(some_of(AnyFruit), {"colour": "blue"}, "x")
    with pytest.raises(InputError, match="x.into is jam; allowed: juice, wine"):
        parse(some_of(AnyFruit), {"into": "jam"}, "x")


@pytest.mark.parametrize("section", [AnyEncoder, AnyStage], ids=["encoders", "stages"])
def test_a_setting_of_several_kinds_is_the_same_in_all(section):
    """So that one default can serve all of them."""
    types = {}
    for kind in kinds_of(section):
        for key, rule in rules_of(kind).items():
            if key not in tags_of(section):
                assert types.setdefault(key, (rule.annotation, rule.metadata)) == (
                    rule.annotation,
                    rule.metadata,
                ), key


def test_a_name_where_there_is_none_to_choose_and_an_empty_one_are_shown_as_such():
    assert fields.suggestion("none", []) == "there is nothing to choose from"
    assert fields.suggestion("x", ["", "sympy"]) == 'allowed: "", sympy'
