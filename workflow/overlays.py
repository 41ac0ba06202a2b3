"""Hide the config files of a run from Snakemake: only the Snakefile reads them.

Otherwise, Snakemake would run the code in a file with the key ``__use_yte__`` before the Snakefile
could refuse the file.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from snakemake.workflow import Workflow

FILES: list[Path] = []  # config files of this process: Snakemake itself gets none


def hand_over(files: Iterable[str | Path]) -> None:
    """Store the config files for the next run in this process."""
    FILES[:] = [Path(file).absolute() for file in files]


def of(workflow: Workflow) -> list[Path]:
    """List the config files of a run: the files from ``./run``, or else from Snakemake."""
    return FILES or list(workflow.configfiles)


def pass_on(workflow: Workflow, files: list[Path]) -> None:
    """Pass checked config files to the processes that Snakemake starts for jobs of a cluster."""
    workflow.configfiles[:] = files
    workflow.config_settings.configfiles = files
