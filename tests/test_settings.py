"""The parser of settings: what it accepts, and the one sentence with which it refuses."""

import json
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest

from cdmae import fields
from cdmae.errors import InputError
from cdmae.fields import asdict, check_partial, later, parse, reference, setting, unused


@dataclass(frozen=True, kw_only=True)
class Inner:
    width: int = setting(4, meaning="width", low=1, high=9)


@dataclass(frozen=True, kw_only=True)
class Outer:
    name: str = setting(meaning="what it is called")
    window: int = setting(3, meaning="words", unit="words", source="3.2", low=2)
    rate: float = setting(0.5, meaning="rate", above=0, high=1)
    noise: float = setting(1.0, meaning="noise", low=0, high=math.inf)
    flag: bool = setting(True, meaning="switch")
    kind: str = setting("a", meaning="kind", choices=("apple", "a"))
    late: str = setting("x", meaning="from a folder", choices=lambda: ["x", "y"])
    mode: Literal["on", "off"] = "on"
    tags: tuple[str, ...] = setting(("t",), meaning="tags")
    sizes: list[int] = setting([1], meaning="sizes", low=1)
    splits: dict[str, tuple[str, ...]] = setting({}, meaning="per name")
    folder: Path | None = None
    inner: Inner = field(default_factory=Inner)
    anything: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self):
        if self.name == "bad":
            raise InputError("name is bad; allowed: another")


def refusal(**values):
    with pytest.raises(InputError) as caught:
        parse(Outer, values, "top")
    return str(caught.value)


def test_defaults_and_values():
    found = parse(Outer, {"name": "n", "rate": 1, "folder": "here", "inner": {"width": 2}, "tags": ["u", "v"]}, "top")
    assert found == Outer(name="n", rate=1.0, folder=Path("here"), inner=Inner(width=2), tags=("u", "v"))
    assert isinstance(found.rate, float)


def test_defaults_are_not_shared():
    first, second = parse(Outer, {"name": "n"}), parse(Outer, {"name": "n"})
    first.sizes.append(2)
    assert second.sizes == [1]


def test_numbers_that_yaml_reads_as_text():
    assert parse(Outer, {"name": "n", "rate": "3e-4"}).rate == 3e-4
    for text in ("fast", "nan", "inf", "1e", "0x1", "1_0", ""):
        assert "top.rate is" in refusal(name="n", rate=text)


def test_unknown_key_is_refused_with_the_nearest():
    assert refusal(name="n", windw=2) == "top.windw is not a setting; did you mean window?"
    assert refusal(name="n", zzz=2).startswith("top.zzz is not a setting; allowed: name, window")
    assert refusal(name="n", inner={"widht": 1}) == "top.inner.widht is not a setting; did you mean width?"


def test_missing_key_tells_its_meaning():
    assert refusal() == "top.name is missing: what it is called"


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        ("window", 1, "top.window is 1; allowed: a whole number from 2"),
        ("window", 2.0, "top.window is 2.0; allowed: a whole number from 2"),
        ("window", "4", 'top.window is "4"; allowed: a whole number from 2'),
        ("window", True, "top.window is true; allowed: a whole number from 2"),
        ("window", None, "top.window is null; allowed: a whole number from 2"),
        ("window", 2**31, "top.window is 2147483648; allowed: a whole number from 2"),
        ("rate", 0, "top.rate is 0; allowed: a number above 0 to 1"),
        ("rate", math.nan, "top.rate is NaN; allowed: a number above 0 to 1"),
        ("rate", False, "top.rate is false; allowed: a number above 0 to 1"),
        ("rate", 10**400, f"top.rate is 1{'0' * 56}...; allowed: a number above 0 to 1"),
        ("noise", -1, "top.noise is -1; allowed: a number from 0 to infinity"),
        ("flag", 1, "top.flag is 1; allowed: true or false"),
        ("flag", "yes", "top.flag is yes; allowed: true or false"),
        ("name", 3, "top.name is 3; allowed: text (in quotation marks if it looks like a number)"),
        ("kind", "aple", "top.kind is aple; did you mean apple?"),
        ("kind", 5, "top.kind is 5; allowed: apple, a"),
        ("late", "q", "top.late is q; allowed: x, y"),
        ("mode", "of", "top.mode is of; did you mean off?"),
        ("tags", "one", "top.tags is one; allowed: a list, each element text (in quotation marks"),
        ("tags", ["a", 1], "top.tags[1] is 1; allowed: text (in quotation marks if it looks like a number)"),
        ("sizes", [0], "top.sizes[0] is 0; allowed: a whole number from 1"),
        ("splits", {"c": "dev"}, "top.splits.c is dev; allowed: a list, each element text"),
        ("splits", ["c"], 'top.splits is ["c"]; allowed: a mapping of keys to values'),
        ("inner", 5, "top.inner is 5; allowed: a mapping of keys to values"),
        ("inner", {"width": 10}, "top.inner.width is 10; allowed: a whole number from 1 to 9"),
        ("anything", [1], "top.anything is [1]; allowed: a mapping of keys to values"),
        ("anything", {True: 1}, "top.anything.true is not a text key; put it in quotation marks"),
    ],
)  # fmt: skip
def test_wrong_values(key, value, sentence):
    assert refusal(**{"name": "n", key: value}).startswith(sentence)


def test_infinity_only_where_it_is_allowed():
    assert parse(Outer, {"name": "n", "noise": math.inf}).noise == math.inf
    assert "top.rate is Infinity" in refusal(name="n", rate=math.inf)


def test_the_dataclass_own_check_gets_the_path():
    assert refusal(name="bad") == "top: name is bad; allowed: another"


def test_partial_values_are_checked_and_unchanged():
    assert check_partial(Outer, {"window": 5}, "defaults") == {"window": 5}
    assert check_partial(Outer, None, "defaults") == {}
    with pytest.raises(InputError, match="defaults.window is 0; allowed"):
        check_partial(Outer, {"window": 0}, "defaults")


def test_plain_values_survive_json():
    found = parse(Outer, {"name": "n", "noise": math.inf, "folder": "a/b", "splits": {"c": ["d"]}})
    plain = json.loads(json.dumps(asdict(found)))
    assert plain["folder"] == "a/b"
    assert plain["tags"] == ["t"]
    assert parse(Outer, plain) == found


def test_reference_names_every_setting():
    rows = {row["name"]: row for row in reference(Outer)}
    assert list(rows) == [*Outer.__dataclass_fields__]
    assert rows["name"]["default"] == "required"
    assert rows["window"] == {
        "name": "window", "default": "3", "allowed": "a whole number from 2", "unit": "words", "meaning": "words",
        "source": "3.2",
    }  # fmt: skip


def test_bounds_have_all_their_digits():
    @dataclass(frozen=True)
    class Large:
        size: int = setting(1, meaning="size", low=1, high=2**20)

    assert reference(Large)[0]["allowed"] == "a whole number from 1 to 1048576"


def test_long_values_are_shortened_but_for_paths():
    assert len(fields.show("x" * 1000)) == 60
    assert len(fields.show({"key": "a/b" * 1000})) == 60
    for path in ("/home/" + "x" * 1000, "a/" * 1000, "folder of mine/\t" + "x" * 1000):
        assert fields.show(path).strip('"').replace("\\t", "\t") == path


def test_a_setting_that_came_later_counts_only_where_it_is_used():
    """Or every result that was made without it would be made again."""

    @dataclass(frozen=True)
    class Recipe:
        rate: float = setting(0.1, meaning="x")
        helper: str = setting("", meaning="x", later=True)

    assert later(Recipe) == unused(Recipe()) == {"helper"}
    assert unused(Recipe(helper="one")) == set()
