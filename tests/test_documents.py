"""What the documents name is there: files, links, decisions by their number; the README is short."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = ["README.md", "CONTRIBUTING.md", *(str(path.relative_to(ROOT)) for path in ROOT.glob("docs/*.md"))]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_file_that_is_named_is_there(document):
    text = re.sub(r"^```.*?^```", "", (ROOT / document).read_text(), flags=re.MULTILINE | re.DOTALL)
    named = re.findall(r"`((?:cdmae|config|docs|envs|workflow|tests|benchmarks)/[\w./-]*)`", text)
    linked = re.findall(r"\]\(([\w./-]+\.(?:md|png))(?:#[\w-]+)?\)", text)
    missing = [path for path in named if not (ROOT / path).exists()]
    assert missing + [path for path in linked if not (ROOT / document).parent.joinpath(path).exists()] == []


def test_the_readme_is_short_and_shows_every_wing():
    lines = (ROOT / "README.md").read_text().splitlines()
    assert len(lines) <= 150
    assert max(map(len, lines)) <= 100
    wings = [path.parent.name for path in ROOT.glob("cdmae/*/__init__.py")]
    assert [wing for wing in wings if not re.search(rf"^    {wing}/ ", "\n".join(lines), flags=re.MULTILINE)] == []


def test_every_decision_that_is_cited_has_its_row():
    rows = re.findall(r"^\| (\d+) \|", (ROOT / "docs/paper.md").read_text(), flags=re.MULTILINE)
    files = [*ROOT.glob("cdmae/**/*.py"), *ROOT.glob("config/*"), *ROOT.glob("docs/*.md")]
    cited = {number for file in files if file.is_file() for number in re.findall(r"decision (\d+)", file.read_text())}
    assert cited
    assert cited <= set(rows)
