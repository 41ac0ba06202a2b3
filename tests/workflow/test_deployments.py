"""Jobs in an environment of conda or in an image of apptainer; stand-ins show what Snakemake asks
these two for.
"""

import os
import subprocess
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


@pytest.fixture
def tools(tmp_path, programs):
    """A function that puts stand-ins on the PATH."""
    packages = "\n".join(path for path in sys.path if path.endswith("site-packages"))

    def put(**scripts):
        programs({
            name: text.replace("FOLDER", str(tmp_path)).replace("PACKAGES", packages) for name, text in scripts.items()
        })  # fmt: skip

    return put


def test_jobs_run_with_the_python_of_snakemake_where_its_environment_is_not_activated(
    finished, programs
):
    """Although another Python, without any packages, is first on the PATH."""
    bare = programs({"python": "echo no packages >&2; exit 1"})
    command = [sys.executable, "-m", "snakemake", TARGET, "--force", *SMOKE]
    environment = os.environ | {"PATH": f"{bare}:/usr/bin:/bin"}
    ended = subprocess.run(
        command, cwd=finished.folder, env=environment, capture_output=True, text=True
    )
    assert ended.returncode == 0, ended.stderr


def test_jobs_run_in_the_environment_that_conda_makes(finished, tmp_path, tools):
    tools(conda=CONDA, activate=ACTIVATE)
    finished.run(
        *SMOKE, TARGET, "--force", "--sdm", "conda", "--conda-prefix", str(tmp_path / "envs")
    )
    (asked,) = tmp_path.glob("envs/*.yaml")
    assert asked.read_text() == (ROOT / "envs/cpu.yaml").read_text()
    ran = (tmp_path / "ran").read_text().splitlines()
    prefixes, scripts = zip(*(line.split(" ", 1) for line in ran), strict=True)
    assert set(prefixes) == {str(asked.with_suffix(""))}
    assert scripts[-1].endswith(".tokens.py")
    assert not finished.plan(TARGET), (
        "what one environment has made another one does not make again"
    )


def test_jobs_run_in_the_image_of_apptainer(finished, tmp_path, tools):
    image = tmp_path / "cdmae.sif"
    image.touch()
    tools(apptainer=APPTAINER)
    words = (TARGET, "--force", "--sdm", "apptainer", "--apptainer-args=--bind /scratch")
    finished.run(*SMOKE, *words, CDMAE_IMAGE=str(image))
    ran = (tmp_path / "ran").read_text().splitlines()
    assert ran[0] == "option --bind /scratch"
    assert ran[-1].startswith(f"in {image}: ") and ran[-1].endswith(".tokens.py")
    assert not finished.plan(TARGET)
