"""The fingerprint follows what a result depends on and nothing else."""

import ast
import importlib
import shutil
import sys

import pytest

from cdmae.config.objectives import OBJECTIVES
from cdmae.errors import InputError
from workflow.fingerprint import NEUTRAL, ROOT, executed, fingerprint

SCRIPT = "workflow/scripts/pretrain.py"
TRAINER = "cdmae/pretraining/trainer.py"
PROJECT = {
    SCRIPT: "from cdmae.job import run\nfrom cdmae.pretraining import trainer\n\ndef main():\n    trainer.go()\n",
    "cdmae/__init__.py": '"""The package."""\n',
    "cdmae/cli.py": "from cdmae import other\n",
    TRAINER: """
from __future__ import annotations
from typing import TYPE_CHECKING
import numpy.linalg
from cdmae.runs import read_run as read
from ..training.state import State
if TYPE_CHECKING:
    from cdmae.report import page
else:
    from cdmae import reached
def go(x: int = 1):
    '''Do it.'''
    import cdmae.masking.batches
    return read(x)  # why
""",
    "cdmae/runs.py": "LIMIT = 3\ndef read_run(x):\n    return x\n",
    "cdmae/training/state.py": "from .. import runs\nclass State:\n    '''A state.'''\n    size = 1\n",
    "cdmae/reached.py": "",
    "cdmae/other.py": "",
    "cdmae/report/__init__.py": "",
    "cdmae/report/page.py": "",
    "cdmae/masking/__init__.py": "from .noise import draw\n",
    "cdmae/masking/batches.py": "",
    "cdmae/masking/strategies/importance.py": "from .. import batches\n",
    "cdmae/masking/noise.py": "def draw(): ...\n",
}


@pytest.fixture
def root(tmp_path):
    for name, text in PROJECT.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_every_module_that_is_imported_and_no_other_but_plugins(root):
    assert list(fingerprint(SCRIPT, root=root)) == [
        "cdmae", "cdmae.masking", "cdmae.masking.batches", "cdmae.masking.noise", "cdmae.pretraining.trainer",
        "cdmae.reached", "cdmae.runs", "cdmae.training.state", SCRIPT,
    ]  # fmt: skip
    found = fingerprint(SCRIPT, ["cdmae.masking.strategies.importance"], root=root)
    assert set(found) - set(fingerprint(SCRIPT, root=root)) == {
        "cdmae.masking.strategies.importance"
    }
    with pytest.raises(FileNotFoundError, match="no module cdmae.masking.entropy"):
        fingerprint(SCRIPT, ["cdmae.masking.entropy"], root=root)


@pytest.mark.parametrize(
    ("name", "old", "new", "module"),
    [
        (TRAINER, "  # why", "  # another reason", None),
        (TRAINER, "'''Do it.'''", '"""Do it otherwise.\n\n    At length.\n    """', None),
        (TRAINER, "'''Do it.'''\n", "\n", None),
        (TRAINER, "int = 1", "int=1", None),
        (TRAINER, "return read(x)", "\n    return (read(\n        x))", None),
        (TRAINER, "int = 1", "int = 2", "cdmae.pretraining.trainer"),
        (SCRIPT, "go()", "go(2)", SCRIPT),
        ("cdmae/runs.py", "LIMIT = 3", "LIMIT = 4", "cdmae.runs"),
        ("cdmae/runs.py", "return x", "return -x", "cdmae.runs"),
        ("cdmae/training/state.py", "size = 1", "size = '1'", "cdmae.training.state"),
        ("cdmae/training/state.py", "size = 1", "rank = 1", "cdmae.training.state"),
        ("cdmae/masking/noise.py", "def draw", "async def draw", "cdmae.masking.noise"),
    ],
)
def test_a_change_shows_in_its_module_alone_and_comments_docstrings_and_layout_do_not(
    root, name, old, new, module
):
    before = fingerprint(SCRIPT, root=root)
    text = (root / name).read_text()
    assert old in text
    (root / name).write_text(text.replace(old, new))
    after = fingerprint(SCRIPT, root=root)
    assert [key for key in after if after[key] != before[key]] == ([module] if module else [])


def test_a_change_elsewhere_does_not_show_and_the_hash_is_the_same_on_every_python(root):
    before = fingerprint(SCRIPT, root=root)
    for name in ("cdmae/report/page.py", "cdmae/cli.py", "cdmae/other.py"):
        (root / name).write_text("x = 1\n")
    assert fingerprint(SCRIPT, root=root) == before
    # The number is written down: a Python that names syntax differently would restart a user's
    # trainings.
    assert fingerprint("cdmae/runs.py", root=root) == {"cdmae/runs.py": "4247fc768dab"}


@pytest.mark.parametrize(
    "text", [b"x = 1\nif x\n", b"x = 1\ny = '\xff'\n", b"x = 1\n\0\n", b"x = (((\n"]
)
@pytest.mark.parametrize("name", [SCRIPT, TRAINER])
def test_a_file_that_is_not_python_is_named_with_its_line(root, name, text):
    (root / name).write_bytes(text)
    with pytest.raises(
        InputError,
        match=f"^{root}/{name}(, line [12],)? is not valid Python: .*; correct it and run",
    ):
        fingerprint(SCRIPT, root=root)


def test_neutral_modules_exist_and_import_nothing_that_computes():
    for module in NEUTRAL:
        path = ROOT / module.replace(".", "/")
        path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
        imports = [
            node
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.ImportFrom)
        ]
        imported = {
            f"cdmae.{alias.name}"
            for node in imports
            if node.module == "cdmae"
            for alias in node.names
        }
        imported |= {node.module for node in imports if node.module.startswith("cdmae.")}
        names = (
            "collections",
            "collections.sources.misspelt",
            "config.reading",
            "files",
            "formats",
        )
        allowed = {f"cdmae.{name}" for name in names}
        assert imported <= NEUTRAL | allowed, module


@pytest.mark.parametrize(
    "script", sorted((ROOT / "workflow/scripts").glob("*.py")), ids=lambda path: path.stem
)
def test_every_script_has_one(script):
    found = fingerprint(script.relative_to(ROOT))
    # the settings of encode and train name their modules
    assert len(found) > 1 or "import_module" in script.read_text()
    assert all(len(value) == 12 for value in found.values())


@pytest.mark.parametrize(
    ("script", "formats"),
    [
        ("fuse", {"files", "arrays", "runs", "collections.store"}),
        ("ngrams", {"files", "arrays", "tokens.corpus"}),
        ("pretrain", {"files", "arrays", "tokens.corpus", "collections.store"}),
        ("snapshot", {"files"}),
    ],
)
def test_a_job_depends_on_the_formats_that_it_uses_and_on_no_other(script, formats):
    """So that another column of the measures does not pre-train again."""
    modules = {name.removeprefix("cdmae.") for name in fingerprint(f"workflow/scripts/{script}.py")}
    known = {
        "files",
        "arrays",
        "runs",
        "tokens.corpus",
        "collections.store",
        "evaluation.per_query",
    }
    known |= {"retrieval.vectors"}
    assert modules & known == formats


def test_it_finds_what_python_imports():
    """Against the interpreter: modules that an import of cdmae.runs loads, less the neutral ones."""
    importlib.import_module("cdmae.runs")
    found = fingerprint("cdmae/runs.py")
    assert {name for name in found if name.startswith("cdmae.")} <= set(sys.modules) | NEUTRAL
    assert "cdmae/runs.py" in found


@pytest.mark.parametrize(
    ("file", "before", "after", "counts"),
    [
        ("objectives/master.py", "spans = 2", "spans = 3", True),
        ("encoders.py", "return (self.encoder_masking, self.decoder_masking)", "return ()", True),
        (
            "encoders.py",
            "Annotated[Real, Gt(0), Le(0.95)] = 0.5",
            "Annotated[Real, Gt(0)] = 0.4",
            False,
        ),
        ("objectives/master.py", "in_words = (", "in_words = str(", False),
        ("encoders.py", "    def check(self,", "    def check(this, self,", False),
    ],
)
def test_of_a_class_of_settings_what_a_job_executes_counts(tmp_path, file, before, after, counts):
    """Settings themselves are parameters of a job; checks and descriptions decide no result."""
    shutil.copytree(ROOT / "cdmae/config", tmp_path / "cdmae/config")
    kind = OBJECTIVES["master"]
    known = executed(kind, root=tmp_path)
    path = tmp_path / "cdmae/config" / file
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after))
    now = executed(kind, root=tmp_path)
    assert (now != known) == counts
    assert executed(kind) == known
