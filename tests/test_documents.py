"""The documents name files, links and decisions that exist, and quote figures as they are."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = [
    "README.md",
    "CONTRIBUTING.md",
    *(str(path.relative_to(ROOT)) for path in ROOT.glob("docs/*.md")),
]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_file_that_is_named_is_there(document):
    text = re.sub(r"^```.*?^```", "", (ROOT / document).read_text(), flags=re.MULTILINE | re.DOTALL)
    named = re.findall(r"`((?:cdmae|config|docs|envs|workflow|tests|benchmarks)/[\w./-]*)`", text)
    linked = re.findall(r"\]\(([\w./-]+\.(?:md|png))(?:#[\w-]+)?\)", text)
    missing = [path for path in named if not (ROOT / path).exists()]
    assert (
        missing + [path for path in linked if not (ROOT / document).parent.joinpath(path).exists()]
        == []
    )


def test_the_layout_shows_every_package():
    layout = (ROOT / "docs/design.md").read_text()
    packages = [path.parent.name for path in ROOT.glob("cdmae/*/__init__.py")]
    assert [
        name for name in packages if not re.search(rf"^    {name}/ ", layout, flags=re.MULTILINE)
    ] == []


def test_the_readme_quotes_results_as_they_are():
    """Rows of its tables are rows of docs/results.md, and figures of its list appear there."""
    readme, results = ((ROOT / path).read_text() for path in ("README.md", "docs/results.md"))
    section = readme.partition("\n## Results\n")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| ")]
    assert len(rows) > 5
    assert [row for row in rows if row not in results.splitlines()] == []
    sentences = "\n".join(line for line in section.splitlines() if not line.startswith("|"))
    figures = re.findall(r"\d+\.\d", sentences)
    assert figures
    assert [figure for figure in figures if figure not in results] == []


def test_every_decision_that_is_cited_has_its_row():
    rows = re.findall(r"^\| (\d+) \|", (ROOT / "docs/paper.md").read_text(), flags=re.MULTILINE)
    files = [*ROOT.glob("cdmae/**/*.py"), *ROOT.glob("config/**/*"), *ROOT.glob("docs/*.md")]
    cited = {
        number
        for file in files
        if file.is_file()
        for number in re.findall(r"decision (\d+)", file.read_text())
    }
    assert cited
    assert cited <= set(rows)
