"""The fingerprint follows what a result depends on and nothing else."""

import shutil

import pytest

from cdmae.config.objectives import OBJECTIVES
from cdmae.errors import InputError
from workflow.fingerprint import ROOT, executed, fingerprint, texts

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
    names = [
        "cdmae", "cdmae.masking", "cdmae.masking.batches", "cdmae.masking.noise",
        "cdmae.pretraining.trainer", "cdmae.reached", "cdmae.runs", "cdmae.training.state", SCRIPT,
    ]  # fmt: skip
    assert list(fingerprint(SCRIPT, root=root)) == names
    plugin = "cdmae.masking.strategies.importance"
    assert set(fingerprint(SCRIPT, [plugin], root=root)) == {*names, plugin}
    with pytest.raises(FileNotFoundError, match="no module cdmae.masking.entropy"):
        fingerprint(SCRIPT, ["cdmae.masking.entropy"], root=root)


@pytest.mark.parametrize(
    ("name", "old", "new", "module"),
    [
        (TRAINER, "  # why", "  # another reason", None),
        (TRAINER, "'''Do it.'''", '"""Do it otherwise.\n\n    At length.\n    """', None),
        (TRAINER, "'''Do it.'''\n", "\n", None),
        (TRAINER, "return read(x)", "\n    return (read(\n        x))", None),
        (TRAINER, "int = 1", "int = 2", "cdmae.pretraining.trainer"),
        (SCRIPT, "go()", "go(2)", SCRIPT),
        ("cdmae/runs.py", "LIMIT = 3", "LIMIT = 4", "cdmae.runs"),
        ("cdmae/training/state.py", "size = 1", "size = '1'", "cdmae.training.state"),
        ("cdmae/masking/noise.py", "def draw", "async def draw", "cdmae.masking.noise"),
        ("cdmae/report/page.py", "", "x = 1\n", None),
        ("cdmae/cli.py", "", "x = 1\n", None),
    ],
)
def test_a_change_shows_in_its_module_alone_and_comments_docstrings_and_layout_do_not(
    root, name, old, new, module
):
    before = fingerprint(SCRIPT, root=root)
    text = (root / name).read_text()
    assert old in text
    (root / name).write_text(text.replace(old, new, 1))
    after = fingerprint(SCRIPT, root=root)
    assert [key for key in after if after[key] != before[key]] == ([module] if module else [])


def test_the_hash_is_the_same_on_every_python(root):
    """It is written down: a Python that names syntax differently would restart trainings."""
    assert fingerprint("cdmae/runs.py", root=root) == {"cdmae/runs.py": "4247fc768dab"}


@pytest.mark.parametrize("text", [b"x = 1\nif x\n", b"x = 1\ny = '\xff'\n", b"x = 1\n\0\n"])
def test_a_file_that_is_not_python_is_named_with_its_line(root, text):
    (root / TRAINER).write_bytes(text)
    with pytest.raises(InputError, match=f"^{root}/{TRAINER}(, line 2,)? is not valid Python: "):
        fingerprint(SCRIPT, root=root)


def test_templates_and_tables_of_a_folder_have_one_hash(root):
    def found():
        return texts("cdmae/report", root=root)

    (root / "cdmae/report/page.html.j2").write_text("one")
    first = found()
    (root / "cdmae/report/page.py").write_text("x = 1\n")
    assert first.keys() == {"cdmae/report"} and found() == first
    (root / "cdmae/report/page.html.j2").write_text("two")
    second = found()
    (root / "cdmae/report/claims.csv").write_text("")
    assert len({str(each) for each in (first, second, found())}) == 3


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
    others = {"runs", "tokens.corpus", "collections.store", "evaluation.per_query"}
    assert modules & (others | formats | {"retrieval.vectors"}) == formats


@pytest.mark.parametrize(
    ("file", "before", "after", "counts"),
    [
        ("objectives.py", "spans = 2", "spans = 3", True),
        ("encoders.py", "return (self.encoder_masking, self.decoder_masking)", "return ()", True),
        ("encoders.py", "MaskRatio = 0.5", "MaskRatio = 0.4", False),
        ("objectives.py", "in_words = (", "in_words = str(", False),
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
    assert (executed(kind, root=tmp_path) != known) == counts
