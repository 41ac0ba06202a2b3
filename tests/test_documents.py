"""The documents name files, links and decisions that exist, and quote figures as they are."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = ["README.md", "CONTRIBUTING.md", *map(str, sorted(ROOT.glob("docs/*.md")))]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_file_that_is_named_is_there(document):
    path = ROOT / document
    text = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)
    named = re.findall(r"`((?:cdmae|config|docs|envs|workflow|tests|benchmarks)/[\w./-]*)`", text)
    linked = re.findall(r"\]\(([\w./-]+\.(?:md|png))(?:#[\w-]+)?\)", text)
    files = [*(ROOT / each for each in named), *(path.parent / each for each in linked)]
    assert [str(file) for file in files if not file.exists()] == []


def test_the_readme_quotes_results_as_they_are():
    """Figures of its list appear in docs/results.md."""
    readme, results = ((ROOT / path).read_text() for path in ("README.md", "docs/results.md"))
    section = readme.partition("\n## Results\n")[2].partition("\n## ")[0]
    sentences = "\n".join(line for line in section.splitlines() if not line.startswith("|"))
    figures = re.findall(r"\d+\.\d", sentences)
    assert figures and [figure for figure in figures if figure not in results] == []


def test_every_decision_that_is_cited_has_its_row():
    rows = re.findall(r"^(\d+)\. ", (ROOT / "docs/paper.md").read_text(), flags=re.MULTILINE)
    paths = [path for name in ("cdmae", "config", "docs") for path in (ROOT / name).rglob("*.*")]
    texts = [path.read_text() for path in paths if path.suffix in (".py", ".md", ".yaml")]
    cited = re.findall(r"decision (\d+)", "".join(texts))
    assert cited and set(cited) <= set(rows)
