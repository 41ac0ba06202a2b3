"""The folder that an export writes."""

from __future__ import annotations

from pathlib import Path

from cdmae.errors import InputError


def check(output: Path) -> None:
    """Raise `InputError` if the folder of an export already contains something."""
    if output.is_dir() and not any(output.iterdir()):
        return
    if output.exists() or output.is_symlink():
        raise InputError(f"--to is {output}, which exists; allowed: a new or empty folder")
