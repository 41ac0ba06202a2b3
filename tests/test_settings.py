"""Settings: which values pydantic is told to accept, and the one sentence with which a value is refused."""

import json
import math
from dataclasses import dataclass
from typing import Annotated, Literal

import pytest
from pydantic import Field

from cdmae import fields
from cdmae.errors import InputError
from cdmae.fields import asdict, known, others, parse, read, setting, unused


@dataclass(frozen=True, kw_only=True)
class Recipe:
    name: str = setting(meaning="what it is called")
    window: int = setting(3, meaning="words", unit="words", source="3.2", low=2)
    rate: float = setting(0.5, meaning="rate", above=0, high=1)
    noise: float = setting(1.0, meaning="noise", low=0, high=math.inf)
    flag: bool = setting(True, meaning="switch")
    kind: Literal["apple", "a"] = setting("a", meaning="kind")
    tags: tuple[str, ...] = setting(("t",), meaning="tags")
    sizes: tuple[Annotated[int, Field(strict=True, ge=1)], ...] = setting((1,), meaning="sizes")
    splits: dict[str, tuple[str, ...]] = setting({}, meaning="per name")
    grades: dict[str, dict[str, Annotated[int, Field(strict=True)]]] = setting({}, meaning="per name")
    helper: str = setting("", meaning="of some", only=("a", "b"), needed=True, later=True)
    depth: int = setting(1, meaning="of others", only=("b", "c"))

    def __post_init__(self):
        if self.name == "bad":
            raise InputError("name is bad; allowed: another")


def refusal(**values):
    with pytest.raises(InputError) as caught:
        parse(Recipe, values, "top")
    return str(caught.value)


def test_defaults_and_values():
    recipe = parse(Recipe, {"name": "n", "rate": 1, "tags": ["u", "v"], "splits": None, "noise": math.inf}, "top")
    assert recipe == Recipe(name="n", rate=1.0, tags=("u", "v"), noise=math.inf)
    assert isinstance(recipe.rate, float)


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        ("windw", 2, "top.windw is not a setting; did you mean window?"),
        ("zzz", 2, "top.zzz is not a setting; allowed: name, window"),
        ("name", "bad", "top: name is bad; allowed: another"),
        ("name", 3, "top.name is 3; allowed: text (in quotation marks if it looks like a number)"),
        ("window", 1, "top.window is 1; allowed: a whole number from 2"),
        ("window", 2.0, "top.window is 2.0; allowed: a whole number from 2"),
        ("window", "4", 'top.window is "4"; allowed: a whole number from 2, without quotation marks'),
        ("window", True, "top.window is true; allowed: a whole number from 2"),
        ("window", None, "top.window is null; allowed: a whole number from 2"),
        ("window", 2**31, "top.window is 2147483648; allowed: a whole number from 2"),
        ("rate", 0, "top.rate is 0; allowed: a number above 0 to 1"),
        ("rate", math.nan, "top.rate is NaN; allowed: a number above 0 to 1"),
        ("rate", math.inf, "top.rate is Infinity; allowed: a number above 0 to 1"),
        ("rate", False, "top.rate is false; allowed: a number above 0 to 1"),
        ("rate", 10**400, f"top.rate is 1{'0' * 56}...; allowed: a number above 0 to 1"),
        ("noise", -1, "top.noise is -1; allowed: a number from 0 to infinity"),
        ("noise", math.nan, "top.noise is NaN; allowed: a number from 0 to infinity"),
        ("flag", "true", 'top.flag is "true"; allowed: true or false'),
        ("flag", 1, "top.flag is 1; allowed: true or false"),
        ("kind", "aple", "top.kind is aple; did you mean apple?"),
        ("kind", 5, "top.kind is 5; allowed: apple, a"),
        ("tags", "one", "top.tags is one; allowed: a list, each element text (in quotation marks"),
        ("tags", ["a", 1], "top.tags[1] is 1; allowed: text (in quotation marks if it looks like a number)"),
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


def test_some_settings_are_read_without_the_others():
    assert read(Recipe, {"window": 5, "tags": ["a"]}, ("defaults",)) == {"window": 5, "tags": ("a",)}
    assert read(Recipe, None) == {}
    with pytest.raises(InputError) as caught:
        read(Recipe, {"window": 0}, ("defaults",))
    assert caught.value.several[0].keys == ("defaults", "window")


def test_plain_values_survive_json():
    recipe = parse(Recipe, {"name": "n", "noise": math.inf, "splits": {"c": ["d"]}})
    plain = json.loads(json.dumps(asdict(recipe)))
    assert plain == asdict(recipe) and plain["tags"] == ["t"]
    assert parse(Recipe, plain) == recipe


def test_bounds_have_all_their_digits():
    assert fields.allowed({"type": "integer", "minimum": 1, "maximum": 2**20}) == "a whole number from 1 to 1048576"


def test_long_values_are_shortened_but_for_paths():
    assert len(fields.show("x" * 1000)) == 60
    assert len(fields.show({"key": "a/b" * 1000})) == 60
    for path in ("/home/" + "x" * 1000, "a/" * 1000, "folder of mine/\t" + "x" * 1000):
        assert fields.show(path).strip('"').replace("\\t", "\t") == path


def test_some_settings_are_known_to_some_kinds_only():
    assert (known(Recipe, "a"), known(Recipe, "b")) == (["helper"], ["helper", "depth"])
    assert (others(Recipe, "a"), others(Recipe, "b")) == ({"depth"}, set())
    assert others(Recipe, "new") == set(), "a kind that no setting names knows all of them"


def test_a_setting_that_came_later_counts_only_where_it_is_used():
    """Or every result that was made without it would be made again."""
    assert unused(Recipe(name="n")) == {"helper"}
    assert unused(Recipe(name="n", helper="one")) == set()
