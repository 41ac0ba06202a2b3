"""The fingerprint follows what a result depends on and nothing else."""

import inspect

import pytest

from cdmae.config.objectives import Master
from workflow import fingerprint, reasons

TRAINER = "cdmae/pretraining/trainer.py"
SCRIPT = "workflow/scripts/go.py"
CHECKS = "cdmae/config/checks.py"
SPLITS = "cdmae/config/splits.py"
PROJECT = {
    SCRIPT: """
from cdmae.config import splits
from cdmae.pretraining import trainer
def main():
    trainer.go()
""",
    "cdmae/__init__.py": '"""The package."""\n',
    "cdmae/cli.py": "from cdmae import other\n",
    "cdmae/other.py": "",
    CHECKS: "def parse(x):\n    return x\ndef other(): ...\nclass Settings: ...\n",
    SPLITS: "FEW = 3\nfrom cdmae.config import schema\ndef check_name(x): ...\n",
    TRAINER: """
from __future__ import annotations
from typing import TYPE_CHECKING
import numpy.linalg
from cdmae.config.checks import Settings, parse
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
    "cdmae/pretraining/__init__.py": "",
    "cdmae/runs.py": "LIMIT = 3\ndef read_run(x):\n    return x\n",
    "cdmae/training/__init__.py": "",
    "cdmae/training/state.py": "from .. import runs\nclass State:\n    '''A state.'''\n    size = 1\n",
    "cdmae/reached.py": "",
    "cdmae/report/page.py": "",
    "cdmae/masking/__init__.py": "from .noise import draw\n",
    "cdmae/masking/batches.py": "",
    "cdmae/masking/noise.py": "def draw(): ...\n",
}
HASHED = """
cdmae cdmae.config.checks.parse cdmae.config.splits cdmae.masking cdmae.masking.batches
cdmae.masking.noise cdmae.pretraining cdmae.pretraining.trainer cdmae.reached cdmae.runs
cdmae.training cdmae.training.state workflow.scripts.go
"""


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A small project, whose files are read again by every call."""
    for name, text in PROJECT.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.setattr(fingerprint, "ROOT", tmp_path)
    for function in ("executed", "_module", "_content"):
        monkeypatch.setattr(fingerprint, function, getattr(fingerprint, function).__wrapped__)
    return tmp_path


def test_every_module_that_is_imported_and_no_other_is_hashed(root):
    assert list(fingerprint.executed("go")) == HASHED.split()
    assert fingerprint.executed("cdmae.reached", "go") == fingerprint.executed("go")


@pytest.mark.parametrize(
    ("name", "old", "new", "module"),
    [
        (TRAINER, "  # why", "  # another reason", None),
        (TRAINER, "'''Do it.'''", '"""Do it otherwise.\n\n    At length.\n    """', None),
        (TRAINER, "return read(x)", "\n    return (read(\n        x))", None),
        (TRAINER, "int = 1", "int = 2", "cdmae.pretraining.trainer"),
        (SCRIPT, "go()", "go(2)", "workflow.scripts.go"),
        ("cdmae/runs.py", "LIMIT = 3", "LIMIT = 4", "cdmae.runs"),
        ("cdmae/masking/noise.py", "def draw", "async def draw", "cdmae.masking.noise"),
        ("cdmae/report/page.py", "", "x = 1\n", None),
        ("cdmae/cli.py", "", "x = 1\n", None),
        (CHECKS, "return x", "return -x", "cdmae.config.checks.parse"),
        (CHECKS, "def other", "async def other", None),
        (SPLITS, "FEW = 3", "FEW = 4", "cdmae.config.splits"),
        (SPLITS, "def check", "async def check", None),
    ],
)
def test_a_change_shows_in_its_module_alone_and_comments_and_layout_do_not(
    root, name, old, new, module
):
    before = fingerprint.executed("go")
    text = (root / name).read_text()
    (root / name).write_text(text.replace(old, new, 1))
    after = fingerprint.executed("go")
    assert [key for key in after if after[key] != before[key]] == ([module] if module else [])


def test_a_job_depends_on_the_formats_that_it_uses_and_on_no_other():
    """So that another column of the measures does not pre-train again."""
    modules = fingerprint.executed("cdmae.pretraining.trainer")
    assert {"cdmae.tokens.corpus", "cdmae.collections.store"} <= modules.keys()
    assert not {"cdmae.runs", "cdmae.evaluation.per_query"} & modules.keys()


SETTINGS = """
class Base(Pretraining):
    spans = 2
    ratio: float = 0.5
    def ratios(self):
        return (self.ratio,)
    def check(self, config): ...
"""


@pytest.mark.parametrize(
    ("before", "after", "counts"),
    [
        ("spans = 2", "spans = 3", True),
        ("return (self.ratio,)", "return ()", True),
        ("= 0.5", "= 0.4", False),
        ("check(self", "check(this", False),
    ],
)
def test_of_a_class_of_settings_what_a_job_executes_counts(monkeypatch, before, after, counts):
    """Settings themselves are parameters of a job; checks and descriptions decide no result."""
    found = []
    for text in (SETTINGS, SETTINGS.replace(before, after)):
        monkeypatch.setattr(inspect, "getsource", lambda _, text=text: text)
        found.append(fingerprint.executed.__wrapped__(Master))
    assert {"cdmae.config.objectives.Master", "cdmae.config.encoders.Pretraining"} <= {*found[0]}
    assert (found[0] != found[1]) == counts


def test_templates_and_tables_have_one_hash_per_path(root):
    def found():
        return fingerprint.assets(["cdmae/report", "cdmae/report/a.html.j2"])

    (root / "cdmae/report/a.html.j2").write_text("one")
    first = found()
    (root / "cdmae/report/page.py").write_text("x = 1\n")
    assert found() == first
    (root / "cdmae/report/b.html.j2").write_text("two")
    second = found()
    assert [path for path in first if first[path] != second[path]] == ["cdmae/report"]
    (root / "cdmae/report/a.html.j2").write_text("three")
    assert not set(second.values()) & set(found().values())


def test_a_changed_setting_is_named_with_its_values_and_changed_code_as_code():
    before, now = ([f"{{'config': {{'report': {{'title': '{title}'}}}}}}"] for title in "ab")
    assert reasons.changes(before, now) == "config.report.title was a and is b"
    before, now = ([f"{{'cdmae.runs': '{value}'}}"] for value in "ab")
    assert reasons.changes(before, now) == "code of cdmae.runs"
