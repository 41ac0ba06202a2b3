"""An environment with Snakemake and the packages that it requires, and no others."""

from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement


def required(name: str, found: dict[str, Distribution]) -> dict[str, Distribution]:
    """Add a package and all that it requires, as far as it is installed, by name.

    The locked environment leaves out a requirement of Snakemake that Snakemake never imports.
    """
    if name in found:
        return found
    try:
        found[name] = distribution(name)
    except PackageNotFoundError:
        return found
    for text in found[name].requires or []:
        requirement = Requirement(text)
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            required(requirement.name, found)
    return found


def make_environment(folder: Path) -> dict[str, str]:
    """Link to the files of these packages; return the variables for ``python -S``."""
    folder.mkdir()
    for package in required("snakemake", {}).values():
        tops = {file.parts[0] for file in package.files or [] if file.parts[0] != ".."}
        for top in tops - {"__pycache__"}:
            link = folder / top
            if not link.exists():
                link.symlink_to(package.locate_file(top))
    return {"PYTHONPATH": str(folder)}
