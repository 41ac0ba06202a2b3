"""Make the environment `.venv` once, then replace this process by the requested command.

`./run` calls this with Python 3.11 to 3.13. pip installs the files of lock/, and accepts only
packages with the listed hashes. `.venv` is stamped by a hash of these files: after a change it is
updated in place, and an interrupted set-up resumes, because pip caches its downloads.
"""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOCK = ROOT / "envs/lock"
VENV = ROOT / ".venv"
PYTHON = VENV / "bin/python"
STAMP = VENV / "stamp"
# Modules are compiled when they are imported. The lists are complete. pyserini has no wheel.
PIP = [PYTHON, "-m", "pip", "install", "--disable-pip-version-check", "--no-input", "--no-compile"]
PIP += ["--no-deps", "--no-build-isolation", "--only-binary", ":all:", "--no-binary", "pyserini"]
WITHOUT_ONNX = {"--no-onnx", "--triples", "--help", "-h"}  # options of ./run export
# A file's tests share a process; tests/conftest.py orders the files.
IN_PARALLEL = ["-n", "logical", "--maxprocesses=4", "--dist=loadfile", "--no-loadscope-reorder"]


def main(arguments: list[str]) -> None:
    """Set up missing packages, then replace this process by pytest or the workflow."""
    device = os.environ.get("CDMAE_DEVICE") or ("gpu" if succeeds("nvidia-smi", "-L") else "cpu")
    if device not in ("cpu", "gpu"):
        sys.exit(f"cdmae: the environment variable CDMAE_DEVICE is {device!r}; expected cpu or gpu")
    tests = arguments[:1] == ["test"]
    # only an export to ONNX uses further packages, which are those of the tests
    exports = arguments[:1] == ["export"] and not WITHOUT_ONNX.intersection(arguments)
    names = ["run", device, "torch"] + ["test"] * (tests or exports)
    names += ["slurm"] * bool(shutil.which("sbatch"))
    if not stamped(names):
        if not os.access(ROOT, os.W_OK):
            sys.exit(f"cdmae: {ROOT} is not writable, and .venv is made there; clone it anew")
        with open(ROOT / ".venv.lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not stamped(names):
                set_up(names)
    os.environ["PATH"] = f"{PYTHON.parent}{os.pathsep}{os.environ.get('PATH', '')}"
    os.environ.pop("PYTHONPATH", None)
    # Without bytecode every job would compile all modules again.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    if tests:
        os.chdir(ROOT)
        files = [each for each in arguments[1:] if Path(each.partition("::")[0]).exists()]
        command = ["-m", "pytest", *([] if files else IN_PARALLEL), *arguments[1:]]
    else:
        os.environ["PYTHONPATH"] = str(ROOT)
        command = ["-P", "-m", "cdmae", *arguments]  # -P: not from the user's folder
    os.execv(PYTHON, [str(PYTHON), *command])


def set_up(names: list[str]) -> None:
    """Install the locked packages into `.venv`; stop if pip fails."""
    cpu = "cpu" in names
    if STAMP.exists():
        say("installing the packages that .venv lacks, once")
    else:
        say(f"setting up .venv for a {'CPU' if cpu else 'GPU'}: up to 2.4 GB, a few minutes, once")
    STAMP.unlink(missing_ok=True)
    version = sys.version_info[:2]
    if not succeeds(PYTHON, "-c", f"import sys, pip; assert sys.version_info[:2] == {version}"):
        # --clear: this Python may itself be that of an interrupted .venv
        visible([sys.executable, "-m", "venv", "--clear", VENV])
    other = "faiss-gpu" if cpu else "faiss-cpu"  # both install the same folder
    succeeds(PYTHON, "-m", "pip", "uninstall", "--yes", other)
    visible([*PIP, *listed("pip")])  # with setuptools, which builds pyserini
    if cpu and not succeeds(*PIP, *listed("torch-cpu")):
        say("pip finds no CPU build of torch and installs PyPI's, on Linux with 3 GB for CUDA")
    elif cpu:
        names = [name for name in names if name != "torch"]
    visible([*PIP, *listed(*names)])
    STAMP.write_text("\n".join(digest(name) for name in [*names, "torch"]))


def listed(*names: str) -> list[str]:
    """Return pip's options for files of lock/."""
    return [word for name in names for word in ("-r", str(LOCK / f"{name}.txt"))]


def visible(command: list[str | Path]) -> None:
    """Run a command whose output is shown; end this process if the command fails."""
    if subprocess.run(command, stdout=sys.stderr).returncode:
        sys.exit("cdmae: the set-up failed, for the reason above; run again to resume")


def digest(name: str) -> str:
    """Return the hash of a locked file, with the version of Python."""
    text = f"{sys.version_info[:2]}" + (LOCK / f"{name}.txt").read_text()
    return hashlib.sha256(text.encode()).hexdigest()


def stamped(names: list[str]) -> bool:
    """Return whether `.venv` starts and has these files, perhaps with others."""
    known = STAMP.read_text() if STAMP.exists() else ""
    return all(digest(name) in known for name in names) and succeeds(PYTHON, "-c", "")


def succeeds(*command: str | Path) -> bool:
    """Return whether a command exists and succeeds; its output is not shown."""
    try:
        return subprocess.run(command, capture_output=True).returncode == 0
    except OSError:
        return False


def say(text: str) -> None:
    """Print one line with the name of its origin."""
    print(f"cdmae: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except KeyboardInterrupt:
        sys.exit("cdmae: stopped from the keyboard; run again to resume")
