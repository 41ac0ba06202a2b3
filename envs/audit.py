"""Check the packages of lock/ for known advisories, and write a bill of materials.

`make audit` and .ci/run call it. The check fails for an advisory that advisories.txt does not list
with a reason. If the advisory service cannot be reached, a message is printed and the check passes.
The bill (CycloneDX, JSON) lists the packages that `./run` may install for a user: all of lock/
except for test tools.
"""

import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path

from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output import make_outputter
from cyclonedx.schema import OutputFormat, SchemaVersion
from packageurl import PackageURL

HERE = Path(__file__).resolve().parent
LOCK = HERE / "lock"
NOT_REACHED = re.compile(
    r"Connection|Timeout|ServiceError|Could not connect|resolve", re.IGNORECASE
)


def main(bill: str) -> int:
    """Write the bill, then check for advisories; return 1 if any has no listed reason."""
    packages = locked(path for path in LOCK.glob("*.txt") if path.name != "test.txt")
    Path(bill).write_text(bill_of_materials(packages))
    say(f"{bill} lists {len(packages)} packages")
    try:
        audited = ask()
    except ConnectionError as error:
        say(f"NOT AUDITED: the advisory service cannot be reached ({error})")
        return 0
    unknown = [each["name"] for each in audited if "skip_reason" in each]
    if len(unknown) == len(audited):
        say("NOT AUDITED: the advisory service cannot be reached (it knows none of the packages)")
        return 0
    if unknown:
        say(f"the advisory service does not know {', '.join(unknown)}")
    found = advisories(audited, (HERE / "advisories.txt").read_text())
    for each in found:
        say(each)
    say(
        f"{len(audited) - len(unknown)} packages audited, "
        f"{len(found)} advisories without a reason in advisories.txt"
    )
    return 1 if found else 0


def locked(paths: Iterable[Path]) -> dict[str, str]:
    """Return the version of every package in the given lists of lock/."""
    text = "\n".join(path.read_text() for path in sorted(paths))
    return dict(sorted(re.findall(r"^([\w.-]+)==([\w.]+)", text, flags=re.MULTILINE)))


def bill_of_materials(packages: dict[str, str]) -> str:
    """Write packages as CycloneDX."""
    bom = Bom()
    for name, version in packages.items():
        url = PackageURL("pypi", name=name, version=version)
        library = Component(
            type=ComponentType.LIBRARY, name=name, version=version, purl=url, bom_ref=str(url)
        )
        bom.components.add(library)
    return make_outputter(bom, OutputFormat.JSON, SchemaVersion.V1_6).output_as_string(indent=2)


def ask() -> list[dict]:
    """Run pip-audit on lock/; raise ConnectionError if its service cannot be reached."""
    lists = [
        word
        for path in sorted(LOCK.glob("*.txt"))
        if path.name != "torch-cpu.txt"
        for word in ("-r", path)
    ]
    with tempfile.NamedTemporaryFile() as answer:
        options = [
            "--require-hashes",
            "--disable-pip",
            "--progress-spinner",
            "off",
            "--timeout",
            "15",
        ]
        command = [
            sys.executable,
            "-m",
            "pip_audit",
            *options,
            "--format",
            "json",
            "--output",
            answer.name,
            *lists,
        ]
        ended = subprocess.run(command, capture_output=True, text=True)
        text = Path(answer.name).read_text()
    if text:
        return json.loads(text)["dependencies"]
    last = (ended.stderr.strip().splitlines() or ["it said nothing"])[-1]
    if NOT_REACHED.search(last):
        raise ConnectionError(last)
    sys.exit(f"envs/audit.py: pip-audit failed: {last}")


def advisories(audited: list[dict], listed: str) -> list[str]:
    """Describe the advisories that are not listed with a reason."""
    known = {
        words[0]
        for line in listed.splitlines()
        if len(words := line.split()) > 1 and words[0] != "#"
    }
    found = []
    for package in audited:
        for each in package.get("vulns", []):
            if known.isdisjoint([each["id"], *each["aliases"]]):
                mended = ", ".join(each["fix_versions"]) or "no version"
                found.append(
                    f"{package['name']} {package['version']} has {each['id']}, fixed in {mended}"
                )
    return found


def say(text: str) -> None:
    """Print one line that begins with this script's name."""
    print(f"envs/audit.py: {text}", flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
