"""What a run needs around it: variables of the environment that make sense, and folders that can be written to.

Without them Snakemake ends in a traceback, or in an error hours later. Here each is a sentence before anything runs.
"""

from __future__ import annotations

import fcntl
import os
import sys
from pathlib import Path
from typing import TextIO

from cdmae.errors import InputError
from cdmae.fields import show

DEVICE = "CDMAE_DEVICE"
DEVICES = ("cpu", "gpu")  # the locked environments in envs/
IMAGE = "CDMAE_IMAGE"
REGISTRIES = ("docker://", "oras://", "library://")  # from which apptainer pulls images
RECORDS = ".snakemake"  # Snakemake's folder in a checkout


def device_here() -> str:
    """Tell what CDMAE_DEVICE says that jobs have: ``cpu``, ``gpu``, or nothing where it is not set."""
    device = os.environ.get(DEVICE, "")
    if device not in ("", *DEVICES):
        raise InputError(f"the environment variable {DEVICE} is {show(device)}; allowed: {', '.join(DEVICES)}")
    return device


def check_records(checkout: Path) -> None:
    """Refuse a checkout in which Snakemake cannot keep its records; a dry run opens them, too."""
    records = checkout / RECORDS
    folder = records if records.exists() else checkout
    if not (folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)):
        raise InputError(
            f"{folder} cannot be written to, where Snakemake keeps its records; allowed: a checkout of your own, such "
            "as a clone"
        )


def image_here(checkout: Path) -> str:
    """Return the image for ``--sdm apptainer``: a file, or an address from which apptainer pulls it."""
    image = os.environ.get(IMAGE, str(checkout / "envs/cdmae.sif"))
    if image.startswith(REGISTRIES):
        return image
    if "://" in image:
        raise InputError(f"{IMAGE} is {show(image)}; allowed: a file, or an address with {', '.join(REGISTRIES)}")
    if not Path(image).is_file():
        raise InputError(
            f"the image {image} does not exist; build it with `apptainer build {image} envs/cdmae.def`, or set {IMAGE} "
            f"to another file or to an address with {', '.join(REGISTRIES)}"
        )
    return image


def lock(results: str) -> TextIO:
    """Lock the folder of the results for this process, as long as the file that is returned is open.

    The lock is the operating system's and ends with the process. Snakemake's own, which outlives a kill, is off.
    """
    try:
        Path(results).mkdir(parents=True, exist_ok=True)
        file = open(f"{results}/.lock", "a+")  # noqa: SIM115 (it stays open)
    except OSError as error:
        raise InputError(f"results is {results}, which cannot be written to: {error.strerror}") from None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.seek(0)
        other = file.read().strip() or "unknown"
        raise InputError(f"another run ({other}) is working on {results}; wait for it") from None
    except OSError as error:  # a network file system without locks
        print(f"{results} cannot be locked ({error.strerror}): start one run at a time", file=sys.stderr)
    file.truncate(0)
    file.write(f"process {os.getpid()} on {os.uname().nodename}")
    file.flush()
    return file
