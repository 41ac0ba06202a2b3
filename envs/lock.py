"""Write the locked files anew from requirements.txt: `make lock`, in an environment whose pip reaches the packages.

constraints.txt      every package that the requirements bring, exactly. No hashes and no index options: a hash would
                     forbid a local or CPU build of torch
requirements-gpu.txt the requirements with faiss-gpu in the place of faiss-cpu; the two are never installed together
cpu.yaml, gpu.yaml   the same for conda: clusters, and Snakemake's --sdm conda
"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
MADE = "# Made by `make lock` from requirements.txt.\n"
PYTHON = "3.11"


def main() -> None:
    """Resolve with pip, then write the files."""
    with tempfile.NamedTemporaryFile() as report:
        command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--quiet"]
        subprocess.run([*command, "--report", report.name, "-r", HERE / "requirements.txt"], check=True)
        metadata = [each["metadata"] for each in json.loads(Path(report.name).read_text())["install"]]
    pins = {normal(each["name"]): each["version"].split("+")[0] for each in metadata}
    pins["faiss-gpu"] = pins["faiss-cpu"]
    for name, text in files((HERE / "requirements.txt").read_text(), pins).items():
        (HERE / name).write_text(text)


def files(requirements: str, pins: dict[str, str]) -> dict[str, str]:
    """Write the text of every file that follows from the requirements and the pins."""
    gpu = requirements.replace("faiss-cpu", "faiss-gpu")
    return {
        "constraints.txt": MADE + "".join(f"{name}=={pins[name]}\n" for name in sorted(pins)),
        "requirements-gpu.txt": MADE + gpu,
        "cpu.yaml": conda(requirements, pins),
        "gpu.yaml": conda(gpu, pins),
    }


def conda(requirements: str, pins: dict[str, str]) -> str:
    """Write a conda file with all pins in its pip section: conda copies it, so it cannot name constraints.txt."""
    head = f"{MADE}channels:\n  - conda-forge\ndependencies:\n  - python={PYTHON}\n  - pip\n  - pip:\n"
    asked = re.findall(r"^([\w.-]+)((?:\[[\w,-]+\])?)", requirements, flags=re.MULTILINE)
    names = {normal(name): name + extras for name, extras in asked}
    other = {"faiss-cpu", "faiss-gpu"} - set(names)
    return head + "".join(f"      - {names.get(each, each)}=={pins[each]}\n" for each in sorted(set(pins) - other))


def normal(name: str) -> str:
    """Write a package's name as PyPI normalises it."""
    return re.sub(r"[-_.]+", "-", name).lower()


if __name__ == "__main__":
    main()
