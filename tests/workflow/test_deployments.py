"""Jobs in an environment of conda or in an image of apptainer; stand-ins show what Snakemake asks
these two for.
"""

import sys

import pytest

from tests.workflow.conftest import ROOT, SMOKE

pytestmark = pytest.mark.workflow

TARGET = "results/smoke/tokens/tiny/pydocs"

# An environment that records which scripts run in it, with the packages of the one that runs the
# tests.
CONDA = """set -e
case "$*" in
    --version) echo conda 26.1.0 ;;
    "info --json") echo '{"conda_prefix": "FOLDER", "platform": "linux-64"}' ;;
    "clean "*) ;;
    "config --get channel_priority --json") echo '{"get": {"channel_priority": "strict"}}' ;;
    "env create "*)
        while [ "$1" != --prefix ]; do shift; done
        python -m venv --without-pip "$2"
        cat >"$(echo "$2"/lib/python*/site-packages)/tests.pth" <<END
PACKAGES
import sys; open('FOLDER/ran', 'a').write(f'{sys.prefix} {sys.argv[0]}' + chr(10))
END
        ;;
    *) echo "conda $*?" >&2; exit 1 ;;
esac
"""
ACTIVATE = 'export PATH="$1/bin:$PATH"\n'

APPTAINER = """set -e
[ "$*" != --version ] || exec echo apptainer version 1.4.0
[ "$1" = exec ] && [ "$2 $3" = "--home $PWD" ]
shift 3
while [[ $1 == -* ]]; do echo "option $1 $2" >>FOLDER/ran; shift 2; done
echo "in $1: ${*: -1}" >>FOLDER/ran
shift
exec "$@"
"""


def test_jobs_run_in_the_environment_of_conda_and_in_the_image_of_apptainer(
    finished, tmp_path, programs
):
    """What one environment has made, another one does not make again."""
    packages = "\n".join(path for path in sys.path if path.endswith("site-packages"))
    tools = {"conda": CONDA, "activate": ACTIVATE, "apptainer": APPTAINER}
    for name, text in tools.items():
        programs({name: text.replace("FOLDER", str(tmp_path)).replace("PACKAGES", packages)})
    ran, image = tmp_path / "ran", tmp_path / "cdmae.sif"

    conda = ("--sdm", "conda", "--conda-prefix", str(tmp_path / "envs"))
    finished.run(*SMOKE, TARGET, "--force", *conda)
    (asked,) = tmp_path.glob("envs/*.yaml")
    assert asked.read_text() == (ROOT / "envs/cpu.yaml").read_text()
    prefixes, scripts = zip(*(line.split(" ", 1) for line in ran.read_text().splitlines()), strict=True)  # fmt: skip
    assert set(prefixes) == {str(asked.with_suffix(""))}
    assert scripts[-1].endswith(".tokens.py")

    ran.unlink()
    image.touch()
    options = ("--sdm", "apptainer", "--apptainer-args=--bind /scratch")
    finished.run(*SMOKE, TARGET, "--force", *options, CDMAE_IMAGE=str(image))
    option, *_, last = ran.read_text().splitlines()
    assert option == "option --bind /scratch"
    assert last.startswith(f"in {image}: ") and last.endswith(".tokens.py")
    assert not finished.plan(TARGET)
