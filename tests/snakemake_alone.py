"""An environment with Snakemake and the packages that it requires, and no others."""

from importlib.metadata import distribution
from pathlib import Path

from packaging.requirements import Requirement


def required(name: str, found: set[str]) -> set[str]:
    """Add a package and all that it requires to the names found so far."""
    if name not in found:
        found.add(name)
        for text in distribution(name).requires or []:
            requirement = Requirement(text)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                required(requirement.name, found)
    return found


def make_environment(folder: Path) -> dict[str, str]:
    """Link to the files of these packages; return the variables for ``python -S``."""
    folder.mkdir()
    for name in required("snakemake", set()):
        package = distribution(name)
        tops = {file.parts[0] for file in package.files or [] if file.parts[0] != ".."}
        for top in tops - {"__pycache__"}:
            link = folder / top
            if not link.exists():
                link.symlink_to(package.locate_file(top))
    return {"PYTHONPATH": str(folder)}
