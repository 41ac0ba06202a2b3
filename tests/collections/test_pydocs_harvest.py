"""Documentation strings are found in sources and in calls, in order, and nothing is imported for
it.
"""

import sys

import pytest
from made_up import make_package

from cdmae.collections.sources.pydocs import harvest
from cdmae.errors import InputError


def names(package, **chosen):
    return [documented.name for documented in harvest.harvest(package, **chosen)]


def test_harvest_finds_docstrings_in_order_and_imports_nothing(tmp_path, monkeypatch):
    leaf = (
        'def b():\n    """B."""\n    def inner():\n        """Local."""\n\n'
        'class A:\n    """A."""\n    def __init__(self):\n        """Special."""\n'
        '    async def run(self):\n        """Run."""\n'
        'if True:\n    def c():\n        """C."""\n'
        'try:\n    pass\nexcept ImportError:\n    def d():\n        """D."""\n'
        'def b():\n    """B again."""\n'
    )
    tree = '"""The tree."""\nraise RuntimeError("imported")\n'
    sources = {"__init__.py": tree, "leaf.py": leaf, "deep/bark.py": '"""Bark."""\n'}
    package = make_package(tmp_path, monkeypatch, sources)
    below = ["b", "A", "A.run", "c", "d"]
    assert names(package) == ["tree", "tree.deep.bark", *(f"tree.leaf.{name}" for name in below)]
    assert names(package, within=("tree.deep",)) == ["tree.deep.bark"]
    assert package not in sys.modules


@pytest.mark.parametrize(
    "file",
    [
        "tests/a.py", "test/a.py", "_vendor/a.py", "externals/a.py", "generated/a.py", "test_a.py", "conftest.py",
        "a_pb2.py", "hook-a.py",
    ],
)  # fmt: skip
def test_harvest_skips_tests_and_vendored_and_generated_files(tmp_path, monkeypatch, file):
    sources = {"__init__.py": "", "kept.py": '"""Kept."""\n', file: '"""Skipped."""\n'}
    assert names(make_package(tmp_path, monkeypatch, sources)) == ["tree.kept"]


def test_harvest_skips_what_says_that_it_is_generated_and_what_does_not_parse(
    tmp_path, monkeypatch
):
    sources = {
        "__init__.py": '# This file was automatically generated from x.\n"""Doc."""\n',
        "bad.py": '"""Doc."""\n{{ x }\n',
    }
    assert names(make_package(tmp_path, monkeypatch, sources)) == []


def test_harvest_reads_the_calls_that_document_compiled_objects(tmp_path, monkeypatch):
    source = """
add_newdoc("tree.core", "array", "Array.")
add_newdoc("tree.core", "array", ("flat", "Flat."))
add_newdoc("tree.core", "array", [("size", "Size."), ("__len__", "Special.")])
add_newdoc("erf", "Error " + "function.")
add_newdoc_for_scalar_type("str_", '(value="", /, *args)', "Text.")
add_newdoc("Like", "typing.Union[...]", "Alike.")
add_docstr(tree.abs, r"Abs {x}.".format(x=1))
add_docstr_all("copy", "Copy.")
det = _add_docstr(_linalg.det, "Det.")
other("tree", "x", "No documentation.")
add_newdoc(*everything)
"""
    sources = {"_docs.py": source.replace('"Array."', '""" Array."""'), "__init__.py": ""}
    package = make_package(tmp_path, monkeypatch, sources)
    assert {documented.name: documented.docstring.strip() for documented in harvest.harvest(package)} == {
        "tree.core.array": "Array.", "tree.core.array.flat": "Flat.", "tree.core.array.size": "Size.",
        "tree.erf": "Error function.", "tree.str_": "Text.", "tree.Like": "Alike.", "tree.abs": "Abs {x}.",
        "torch.Tensor.copy": "Copy.", "tree._docs.det": "Det.",
    }  # fmt: skip


def test_harvest_inspects_c_modules_and_refuses_a_package_that_is_not_installed():
    harvested = harvest.harvest(harvest.STDLIB, within=("math", "builtins"))
    texts = {documented.name: documented.docstring for documented in harvested}
    assert "radians" in texts["math.degrees"]
    assert texts["builtins.str.upper"].startswith("Return a copy")
    assert not any(name.rpartition(".")[2].startswith("__") for name in texts)
    with pytest.raises(
        InputError, match="the package no_such_package is not installed in this environment"
    ):
        names("no_such_package")
