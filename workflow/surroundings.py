"""Check the surroundings of a run: environment variables, and folders that must be writable.

Without these checks, Snakemake would end with a traceback, or with an error hours later. Each
problem is reported in one sentence before any job starts.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import stat
import sys
from pathlib import Path
from typing import TextIO

from cdmae.cli import PARENT
from cdmae.errors import InputError
from cdmae.fields import show
from cdmae.log import say

DEVICE = "CDMAE_DEVICE"
DEVICES = ("cpu", "gpu")  # the locked environments in envs/
IMAGE = "CDMAE_IMAGE"
PROGRAMS = "CDMAE_PROGRAMS"  # the folder of this Python
# prefixes of addresses from which apptainer pulls images
REGISTRIES = ("docker://", "oras://", "library://")
RECORDS = ".snakemake"  # Snakemake's folder in the working directory


def device_here() -> str:
    """Return the device of jobs from CDMAE_DEVICE: ``cpu``, ``gpu``, or "" if it is not set."""
    device = os.environ.get(DEVICE, "")
    if device not in ("", *DEVICES):
        raise InputError(
            f"the environment variable {DEVICE} is {show(device)}; allowed: {', '.join(DEVICES)}"
        )
    return device


def check_prefix(results: str, configured: str) -> None:
    """Refuse an absolute results folder if the workflow is imported as a module with a prefix."""
    if os.path.isabs(configured) and not os.path.isabs(results):
        raise InputError(
            f"results is {configured}, to which the module's prefix is added: {results}; "
            "allowed: a relative path, or a module without a prefix"
        )


def check_records(source: Path, working: Path) -> None:
    """Refuse folders with braces in their paths, and folders to which Snakemake cannot write.

    Snakemake writes records even in a dry run.
    """
    for folder in (source, working):
        if re.search("[{}]", str(folder)):
            raise InputError(
                f"the folder {folder} has braces in its path, which Snakemake reads as wildcards; "
                "rename it"
            )
    records = working / RECORDS
    folder = records if records.exists() else working
    if not (folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)):
        raise InputError(
            f"{folder} is not writable, and Snakemake keeps its records there; "
            "allowed: a folder that you can write to, such as your own clone"
        )


def pass_to_jobs(*, own_environment: bool) -> None:
    """Set the environment variables that ``workflow/launch`` and the scripts of jobs read.

    A job ends when this process ends: if Snakemake is killed, its jobs save their states instead of
    continuing next to the jobs of the next run. Without an environment of their own, jobs use this
    Python, even if its environment is not activated.
    """
    os.environ[PARENT] = str(os.getpid())
    os.environ.pop(PROGRAMS, None)
    if not own_environment:
        os.environ[PROGRAMS] = os.path.dirname(sys.executable)


def image_here(checkout: Path) -> str:
    """Return the image for ``--sdm apptainer``: a file, or an address that apptainer pulls."""
    image = os.environ.get(IMAGE, str(checkout / "envs/cdmae.sif"))
    if image.startswith(REGISTRIES):
        return image
    if "://" in image:
        raise InputError(
            f"{IMAGE} is {show(image)}; allowed: a file, or an address with {', '.join(REGISTRIES)}"
        )
    if not Path(image).is_file():
        raise InputError(
            f"the image {image} does not exist; "
            f"build it with `apptainer build {image} envs/cdmae.def`, "
            f"or set {IMAGE} to another file or to an address with {', '.join(REGISTRIES)}"
        )
    return image


def lock(results: str) -> TextIO:
    """Lock the results folder for this process, until the returned file is closed.

    The operating system holds the lock and releases it when the process ends. Snakemake's own lock
    would outlive a killed process, and is turned off.
    """
    file = _opened(results)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        other = show(file.read(200).strip() or "unknown")
        raise InputError(f"another run ({other}) is working on {results}; wait for it") from None
    except OSError as error:  # a network file system without locks
        say(f"{results} cannot be locked ({error.strerror}): start one run at a time")
    file.truncate(0)
    file.write(f"process {os.getpid()} on {os.uname().nodename}")
    file.flush()
    return file


def _opened(results: str) -> TextIO:
    """Open the lock file.

    In a folder that other users may write to, the file must be a plain lock file, not a link.
    """
    path = Path(results, ".lock")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        number = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise _no_lock(path) from None
        raise InputError(
            f"results is {results}, which is not writable: {error.strerror}; allowed: a folder "
            "that you can write to"
        ) from None
    status = os.fstat(number)
    if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
        os.close(number)
        raise _no_lock(path)
    return open(number, "r+", encoding="utf-8", errors="replace")


def _no_lock(path: Path) -> InputError:
    return InputError(f"{path} is not a plain file but a link or a pipe; delete it and run again")
