"""Write the locked files from the requirements: `make lock`, on a machine that reaches PyPI.

constraints.txt      every package that requirements.txt brings, directly or not, exactly
requirements-gpu.txt the requirements with faiss-gpu instead of faiss-cpu; the two are never
                     installed together
cpu.yaml, gpu.yaml   the same for conda: clusters, and Snakemake's --sdm conda
lock/*.txt           the packages of ./run: the same versions, with the SHA-256 of every file that
                     PyPI has of each, for all supported versions of Python and all machines,
                     and without the packages that uv.toml leaves out
    pip.txt          pip itself and setuptools, which builds pyserini
    run.txt          the packages of a run except for the next three
    cpu.txt, gpu.txt faiss for either, the second with CUDA's libraries
    torch.txt        torch as PyPI has it; on Linux with CUDA's libraries
    slurm.txt        the executor for SLURM, where there is an sbatch
    test.txt         the tools of the tests

lock/torch-cpu.txt is kept by hand: PyPI has no CPU build of torch for Linux. Locked versions
do not change while they satisfy the requirements. `make lock UPGRADE=--upgrade` selects the newest
versions; `UPGRADE="-P numpy"` selects the newest version of one package.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
MADE = "# Made by `make lock` from requirements.txt.\n"
# of pyserini, PyPI has a source archive only
BINARY = "--require-hashes\n--only-binary :all:\n--no-binary pyserini\n"
LOCKED = f"# Made by `make lock`, for `pip install --no-deps --no-build-isolation`.\n{BINARY}"
BUILDS = "pip\nsetuptools\n"
PYTHON = "3.11"
# requirements of torch on Linux; its other requirements are in run.txt
CUDA = re.compile("nvidia-|cuda-|triton$")
# systems on which ./run, a shell script, does not run
ELSEWHERE = re.compile("sys_platform == '(win32|emscripten)'")


def main(options: list[str]) -> None:
    """Resolve with uv, then write the files; `options` are uv's."""
    requirements = (HERE / "requirements.txt").read_text()
    with tempfile.TemporaryDirectory() as folder:
        pins = resolve(requirements, Path(folder), options)
        found = files(requirements, pins)
        for name, text in (found | locks(found, Path(folder))).items():
            (HERE / name).write_text(text)


def resolve(requirements: str, folder: Path, options: list[str]) -> dict[str, str]:
    """Choose the version of every package; keep the present version if it fits."""
    asked = folder / "requirements.txt"
    kept = folder / "constraints.txt"
    asked.write_text(requirements)
    kept.write_text((HERE / "constraints.txt").read_text())
    uv("--no-config", "--python-platform", "linux", "-o", kept, asked, *options)
    pins = dict(re.findall(r"^([\w.-]+)==(\S+)", kept.read_text(), flags=re.MULTILINE))
    pins = {name: version for name, version in pins.items() if not CUDA.match(name)}
    return pins | {"faiss-gpu": pins["faiss-cpu"]}


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
    """Write a conda file with all pins in its pip section.

    conda copies the file, so it cannot name constraints.txt.
    """
    head = (
        f"{MADE}channels:\n  - conda-forge\ndependencies:\n  - python={PYTHON}\n  - pip\n  - pip:\n"
    )
    asked = re.findall(r"^([\w.-]+)((?:\[[\w,-]+\])?)", requirements, flags=re.MULTILINE)
    names = {normal(name): name + extras for name, extras in asked}
    other = {"faiss-cpu", "faiss-gpu"} - set(names)
    return head + "".join(
        f"      - {names.get(each, each)}=={pins[each]}\n" for each in sorted(set(pins) - other)
    )


def locks(found: dict[str, str], folder: Path) -> dict[str, str]:
    """Write the text of every file in lock/ from the files that were made so far."""
    pins = folder / "pins.txt"
    pins.write_text(found["constraints.txt"])
    asked = {
        "pip": BUILDS,
        "run": (HERE / "requirements.txt").read_text(),
        "gpu": found["requirements-gpu.txt"],
        "slurm": (HERE / "requirements-slurm.txt").read_text(),
        "test": (HERE / "requirements-test.txt").read_text(),
    }
    blocks = {name: compiled(text, pins, folder) for name, text in asked.items()}
    run = blocks["run"]
    torch = {name for name in run if name == "torch" or CUDA.match(name)}
    sets = {name: set(blocks[name]) - set(run) for name in ("gpu", "slurm", "test")}
    sets |= {
        "pip": set(blocks["pip"]),
        "cpu": {"faiss-cpu"},
        "torch": torch,
        "run": set(run) - torch - {"faiss-cpu"},
    }
    texts = {}
    for name, packages in sets.items():
        known = run | blocks.get(name, {})
        texts[f"lock/{name}.txt"] = LOCKED + "".join(known[each] for each in sorted(packages))
    return texts


def compiled(requirements: str, pins: Path, folder: Path) -> dict[str, str]:
    """Return the line and hashes of every package that the requirements need, by name."""
    asked = folder / "asked.txt"
    made = folder / "made.txt"
    asked.write_text(requirements)
    made.unlink(missing_ok=True)
    uv(
        "--config-file",
        HERE / "uv.toml",
        "--universal",
        "--generate-hashes",
        "-c",
        pins,
        "-o",
        made,
        asked,
    )
    blocks = re.findall(r"^[\w.-]+==.*(?:\n .*)*\n", made.read_text(), flags=re.MULTILINE)
    return {block.partition("==")[0]: block for block in blocks if not ELSEWHERE.search(block)}


def uv(*options: str | Path) -> None:
    """Run uv's resolver."""
    command = [
        sys.executable,
        "-m",
        "uv",
        "pip",
        "compile",
        "--quiet",
        "--no-header",
        "--no-annotate",
    ]
    subprocess.run([*command, "--python-version", PYTHON, *options], check=True)


def normal(name: str) -> str:
    """Write a package's name as PyPI normalises it."""
    return re.sub(r"[-_.]+", "-", name).lower()


if __name__ == "__main__":
    main(sys.argv[1:])
