"""The way from a fresh clone to an environment: ./run, envs/start.py and the locked files."""

import ast
import importlib.util
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from snakemake import cli
from snakemake.api import DAGApi

from cdmae.errors import InputError
from tests.conftest import together
from workflow import commands, targets
from workflow import start as run_start

ROOT = Path(__file__).resolve().parent.parent
ENVS = ROOT / "envs"


def module(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    found = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(found)
    return found


@pytest.fixture
def start(tmp_path, monkeypatch):
    """start.py in a folder of its own that asks for no packages, and in which pip reaches nothing."""
    (tmp_path / "envs").mkdir()
    shutil.copy(ENVS / "start.py", tmp_path / "envs")
    for name in ("requirements.txt", "requirements-test.txt", "requirements-slurm.txt", "constraints.txt"):
        (tmp_path / "envs" / name).write_text("# nothing\n")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("CDMAE_DEVICE", raising=False)
    return module(tmp_path / "envs/start.py")


def test_an_old_python_can_read_the_start():
    tree = ast.parse((ENVS / "start.py").read_text(), feature_version=(3, 4))
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.JoinedStr | ast.AnnAssign | ast.NamedExpr)]
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.arg) and node.annotation]


@pytest.mark.parametrize("says", ["Python 3.9.2", "Python 3.14.0", None])
def test_without_a_suitable_python_run_says_so(tmp_path, programs, monkeypatch, says):
    python = {"python3": f'[ "$1" = --version ] && echo {says} || exit 1'} if says else {}
    programs(python, ["dirname", "bash"], alone=True)
    for name, value in {"PYTHON": "", "PYENV_ROOT": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    shutil.copy(ROOT / "run", tmp_path)
    ended = subprocess.run(["/bin/sh", tmp_path / "run", "-n"], capture_output=True, text=True)
    assert ended.returncode == 1
    assert ended.stderr.splitlines() == [
        f"cdmae: needs Python 3.11 to 3.13 with venv, and found {says or 'no python3'}; "
        "install one (or uv), or name it: PYTHON=/path ./run"
    ]


def test_a_full_disk_a_checkout_of_others_and_an_unknown_device_stop_the_set_up(start, monkeypatch, capsys):
    with monkeypatch.context() as patch, pytest.raises(SystemExit):
        patch.setattr(start.shutil, "disk_usage", lambda path: SimpleNamespace(total=10**10, used=0, free=10**9))
        start.set_up("cpu")
    assert "needs about 4 GB" in capsys.readouterr().err
    assert not Path(start.VENV).exists()
    with monkeypatch.context() as patch, pytest.raises(SystemExit):
        patch.setattr(start.os, "access", lambda path, mode: path != start.ROOT)
        start.set_up("cpu")
    assert capsys.readouterr().err.startswith(f"cdmae: {start.ROOT} cannot be written to, where .venv is made; allowed")
    monkeypatch.setenv("CDMAE_DEVICE", "tpu")
    with pytest.raises(SystemExit):
        start.wanted_device()
    assert "'tpu'; allowed: cpu, gpu" in capsys.readouterr().err


@pytest.mark.parametrize("there", [True, False])
def test_the_executor_for_slurm_is_installed_where_there_is_slurm(start, monkeypatch, there):
    asked = []
    Path(start.VENV).mkdir()
    monkeypatch.setattr(start.shutil, "which", lambda name: "/usr/bin/sbatch" if there and name == "sbatch" else None)
    monkeypatch.setattr(start, "works", lambda *_: True)
    monkeypatch.setattr(start, "install", asked.extend)
    start.set_up("gpu")
    assert asked == ["requirements-gpu.txt", "requirements-test.txt", *(["requirements-slurm.txt"] if there else [])]


def test_while_pip_works_it_is_told_what_it_does(start, monkeypatch, capsys):
    """Where pip says nothing for minutes, the installed packages are counted."""
    words, waits, clock = [], iter([False, False, True]), iter([0, 10, 70])
    monkeypatch.setattr(start, "time", SimpleNamespace(time=lambda: next(clock)))

    class Ended:
        def wait(self, seconds):
            words.append("Downloading torch-2.9.whl (900 MB)" if not words else "Installing collected packages: a, b")
            return next(waits)

    for name in ("a-1.dist-info", "b-2.dist-info", "a"):
        Path(start.VENV, "lib/python3.12/site-packages", name).mkdir(parents=True)
    start.tell(words, 190, Ended())
    assert capsys.readouterr().err.splitlines() == [
        "cdmae: 0:10  Downloading torch-2.9.whl (900 MB)",
        "cdmae: 1:10  2 of about 190 packages installed",
    ]


@pytest.mark.workflow  # makes a virtual environment: some seconds
def test_set_up_once_again_after_a_change_and_on_after_a_failure(start, monkeypatch, capsys):
    start.set_up("cpu")
    stamp = Path(start.STAMP).read_text()
    made = os.lstat(start.PYTHON).st_ctime_ns
    with monkeypatch.context() as patch:
        patch.setattr(start, "install", lambda files: pytest.fail("installed twice"))
        start.set_up("cpu")

    requirements = Path(start.HERE, "requirements.txt")
    requirements.write_text("no-such-package-anywhere\n")
    with pytest.raises(SystemExit):
        start.set_up("cpu")
    said = capsys.readouterr().err
    assert "pip failed" in said and "No matching distribution found for no-such-package-anywhere" in said
    assert not Path(start.STAMP).exists()

    requirements.write_text("# nothing\n")
    start.set_up("cpu")
    assert Path(start.STAMP).read_text() == stamp
    assert os.lstat(start.PYTHON).st_ctime_ns == made, "the environment was made anew instead of going on"


# --- ./run -----------------------------------------------------------------------------------------------------------


def test_the_help_of_run_names_its_commands_without_an_environment(tmp_path):
    shutil.copy(ROOT / "run", tmp_path)
    for option in ("--help", "-h", "help"):
        found = subprocess.run(["/bin/sh", tmp_path / "run", option], capture_output=True, text=True)
        assert found.returncode == 0 and not found.stderr
        for name in (*commands.COMMANDS, "test", "--help-snakemake", "COMMAND --help"):
            assert f"\n  ./run {name}" in found.stdout
        assert found.stdout.endswith("the first suitable one is taken.\n")
    assert not (tmp_path / ".venv").exists()


@pytest.fixture
def refusal(monkeypatch):
    """A function that runs `workflow/start.py` in the checkout and gives the sentence in which it ends."""
    monkeypatch.setattr(DAGApi, "execute_workflow", lambda *_, **__: pytest.fail("was planned"))
    monkeypatch.setenv("CDMAE_DEVICE", "")  # which plan sets
    monkeypatch.chdir(ROOT)

    def run(*words):
        with pytest.raises((InputError, SystemExit)) as refused:
            run_start.main(list(words))
        return str(refused.value).removeprefix("cdmae: ")

    return run


@pytest.fixture
def handed(monkeypatch):
    """A function that runs `workflow/start.py` and gives the targets and config files that Snakemake gets."""
    asked = []
    monkeypatch.setattr(cli, "args_to_api", lambda options, _: asked.append(options) or True)
    monkeypatch.chdir(ROOT)

    def run(*words):
        with pytest.raises(SystemExit) as ended:
            run_start.main(list(words))
        assert ended.value.code == 0
        return asked[-1].targets, asked[-1].configfile

    return run


@pytest.mark.parametrize(
    ("kept", "system", "missing", "what"),
    [
        ("true", ["--system", "cdmae-stage3"], "vectors/cdmae-stage3/pydocs", "./run"),
        ("false", ["--system", "cdmae-stage3"], "vectors/cdmae-stage3/pydocs", "./run {}/vectors/cdmae-stage3/pydocs"),
        ("true", [], "measures/bm25.tsv", "./run"),  # by which it would choose
    ],
)
def test_search_says_how_to_get_what_is_missing(tmp_path, refusal, kept, system, missing, what):
    (tmp_path / "trained/cdmae-stage3").mkdir(parents=True)
    config = tmp_path / "own.yaml"
    config.write_text(f"results: {tmp_path}\nevaluation: {{keep_vectors: {kept}}}\n")
    said = f"{tmp_path}/{missing} is not made yet; {what.format(tmp_path)} with the same config files makes it"
    assert refusal("search", "word", *system, "--configfile", str(config)) == said


@pytest.mark.parametrize("word", ["all", "report", "latency", "README.md", "else/where"])
def test_targets_files_and_options_are_handed_to_snakemake(word, handed, rules):
    for profile in ("workflow/profiles/default", "none"):
        assert handed("-n", word, "--cores", "2", "--workflow-profile", profile)[0] == [word]
    targets.check(rules, commands.configured([]))


WORD = "neither a command nor a rule nor a file; "
PATH = "nothing that this config makes; "
SERCH = f"serch is {WORD}did you mean search?"
SEVERAL = "several results; allowed: one of them, such as results/"


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("serch", WORD + "did you mean search?"),
        ("plans", WORD + "did you mean plan?"),
        ("tset", WORD + "did you mean test?"),
        ("adpot", WORD + "did you mean adopt?"),
        ("importnace", WORD + "did you mean importance?"),
        ("xyz", WORD + "./run --help lists what there is"),
        ("results/measures/cdmae-stag3.tsv", PATH + "did you mean results/measures/cdmae-stage3.tsv?"),
        ("./results/encoders/cdmea/", PATH + "did you mean results/encoders/cdmae?"),
        ("results/trec/bm25/pydocs.tset.run", PATH + "did you mean results/trec/bm25/pydocs.test.run?"),
        (f"{ROOT}/results/qqq", PATH + "./run -n lists what it makes"),
        ("results//encoders/cdmea", PATH + "did you mean results/encoders/cdmae?"),
        ("results/masked_terms/mae.json", PATH + "did you mean results/masked_terms/cdmae.json?"),
        ("mine.yaml", PATH + "config files follow --configfile"),
        ("config/smoke.yaml", PATH + "config files follow --configfile"),
        ("results/tables/table_main.svg", PATH + "did you mean results/tables/table_main.csv?"),
        ("results/trained/bm25", PATH + "did you mean results/trained/"),
        ("results/negatives/cdmae-stage3.pydocs.train.parquet", PATH + "did you mean results/negatives/"),
        ("pretrain", "a rule that makes " + SEVERAL + "encoders/"),
        ("mine", "a rule that makes " + SEVERAL + "negatives/cdmae-stage1.pydocs.train.parquet"),
        ("results/report", "a folder of " + SEVERAL + "report/index.html"),
        ("./results/", "a folder of " + SEVERAL),
    ],
)
def test_what_no_job_makes_is_refused_with_what_may_have_been_meant(target, said, rules, monkeypatch):
    monkeypatch.chdir(ROOT)
    (name,) = targets.ask([target])
    with pytest.raises(InputError) as refused:
        targets.check(rules, commands.configured([]))
    assert str(refused.value).startswith(f"{name} is {said}")


@pytest.mark.parametrize("place", ["{}", "./{}", f"{ROOT}/{{}}", "results/../{}", "{}/"])
def test_a_result_may_be_named_by_any_path_to_it(place, handed, tmp_path):
    result = "results/encoders/cdmae"
    assert handed("-n", place.format(result))[0] == [result]
    assert handed(place.format(result), "--config", "seed=3")[0] == [result], "what only Snakemake checks, too"
    config = tmp_path / "own.yaml"
    config.write_text(f"results: {tmp_path}/./out/\n")
    targets, _ = handed(f"{tmp_path}//out/encoders/cdmae", "--configfile", str(config))
    assert targets == [f"{tmp_path}/out/encoders/cdmae"]


def test_behind_the_config_files_stand_targets(handed, tmp_path, monkeypatch):
    """Snakemake would read them as configs. Config files are looked for where one is, targets in the checkout."""
    (tmp_path / "own.yaml").write_text("seed: 3\n")
    monkeypatch.chdir(tmp_path)
    words = ["--configfile", "own.yaml", f"{ROOT}/config/smoke.yaml", "results/smoke/encoders/cdmae", "report"]
    files = [tmp_path / "own.yaml", ROOT / "config/smoke.yaml"]
    assert handed(*words) == (["results/smoke/encoders/cdmae", "report"], files)


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("collections: {a: {source: beir, path: no/where}}", "collections.a: path is no/where, and {} is not there"),
        ("starts: {a: {checkpoint: ./no/where}}", "starts.a.checkpoint is ./no/where, and {} is no folder"),
    ],
)
@pytest.mark.parametrize("word", ["-n", "plan"])
def test_a_relative_path_of_a_config_begins_at_the_checkout(setting, said, word, tmp_path, refusal, monkeypatch):
    """Wherever one is, and wherever the config file lies: a folder of that name beside it does not count."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "no/where").mkdir(parents=True)
    (tmp_path / "own.yaml").write_text(f"standalone: true\n{setting}\n")
    sentence = f"{tmp_path}/own.yaml, line 2: {said.format(ROOT / 'no/where')}; allowed: a"
    assert refusal(word, "--configfile", "own.yaml").startswith(sentence)


@pytest.mark.parametrize("name", ["search", "importance"])
def test_words_after_a_config_file_are_words(name, tmp_path, monkeypatch):
    overlay, more = tmp_path / "own.yaml", tmp_path / "more.yaml"
    overlay.write_text("seed: 3\n")
    more.write_text("seed: 4\n")
    monkeypatch.chdir(tmp_path)
    Path("lists").touch()  # a word that is a file, too
    words, options = commands.read(name, ["--configfile", "own.yaml", "sorted", "lists"])
    assert (words, options["configfile"]) == (["sorted", "lists"], [str(overlay)])
    words, options = commands.read(name, ["sorted", "--configfile", str(overlay), "more.yaml", "lists"])
    assert (words, commands.configured(options["configfile"]).seed) == (["sorted", "lists"], 4)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("search", 'search needs words, such as ./run search "compute the determinant of a matrix"'),
        ("search ''", "search needs words, such as ./run search "),
        ("importance --configfile SMOKE", "importance needs words, such as ./run importance "),
        ("search caf\udce9", r"the argument 'caf\udce9' is not UTF-8; allowed: text"),
        ("search --depth 0 lists", "--depth is 0; allowed: a whole number from 1 to 1000, evaluation.depth"),
        ("search --depth 2000 lists", "--depth is 2000; allowed: a whole number from 1 to 1000, evaluation"),
        ("search --dept 3 lists", "unrecognized arguments: --dept; ./run search --help lists the options"),
        ("plan --cores many", "argument --cores: invalid int value: 'many'; ./run plan --help lists the opt"),
        ("adopt --configfile SMOKE mine", "mine is no config file; ./run adopt --help lists "),
        ("search word --configfile bare.yaml", "the config has no system that could be asked; give the --confi"),
        ("importance word --configfile bare.yaml", "no encoder of the config is masked by importance, so that "),
        ("--workflow-profile nosuch -n", "--workflow-profile is nosuch; allowed: a folder with a profile.yaml"),
        ("-n --workflow-profile=tests", "--workflow-profile is tests; allowed: a folder with a profile.yaml, or"),
        ("-n --cores two", "-n --cores two: Error parsing number of cores (--cores, -c): must be integer or"),
        ("CDMAE_DEVICE=tpu -n", "the environment variable CDMAE_DEVICE is tpu; allowed"),
        ("-n --config seed --configfile SMOKE", "-n --config seed --configfile "),
        ("-n --config seed=3 --configfile no.yaml", "the config file {}/no.yaml cannot be read: No such file"),
        ("serch foo", SERCH),
        ("--quiet rules progress -n serch", SERCH),
        ("--rerun-incomplete --cores=2 serch", SERCH),
        ("--until pretrain -n all serch", SERCH),
        ("plan serch", SERCH),
        ("-n --config seed=3 --configfile SMOKE serch", SERCH),
    ],
)
def test_what_cannot_be_done_is_refused_in_a_sentence(line, said, refusal, tmp_path, monkeypatch):
    (tmp_path / "bare.yaml").write_text("standalone: true\n")
    monkeypatch.chdir(tmp_path)
    words = shlex.split(line.replace("SMOKE", str(ROOT / "config/smoke.yaml")))
    if re.match("[A-Z]", line):
        monkeypatch.setenv(*words.pop(0).split("="))
    assert refusal(*words).startswith(said.format(tmp_path))


@pytest.mark.parametrize("name", ["plan", "adopt", "search", "importance", "sizes"])
def test_the_help_of_a_command_has_examples_that_it_reads(name, capsys):
    with pytest.raises(SystemExit) as ended:
        run_start.main([name, "--help"])
    said = capsys.readouterr().out
    assert ended.value.code == 0
    assert said.startswith(f"usage: ./run {name} [-h]")
    examples = re.findall(r"^  (\./run .*)$", said, flags=re.MULTILINE)
    assert examples
    for example in examples:
        program, command, *words = shlex.split(example)
        assert (program, command) == ("./run", name)
        commands.read(name, words)


def test_a_file_of_tests_stays_in_one_process():
    """The tests of a file share what it makes, those of the workflow a finished run."""
    options = module(ENVS / "start.py").IN_PARALLEL
    command = [sys.executable, "-m", "pytest", *options, "-n", "2", "-vv", "-o", "console_output_style=classic"]
    environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    files = ("tests/test_machine.py", "tests/test_settings.py")
    found = subprocess.run([*command, *files], cwd=ROOT, env=environment, capture_output=True, text=True)
    ran = set(re.findall(r"^\[(gw\d)\] PASSED (\S+)::", found.stdout, flags=re.MULTILINE))
    assert {file for _, file in ran} == set(files), found.stdout
    assert len(ran) == 2, "each file in one process only"
    groups = [together(f"tests/{name}::test_x") for name in ("workflow/test_a.py", "workflow/test_b.py", "test_a.py")]
    assert groups == ["workflow", "workflow", "tests/test_a.py"]
    assert together("tests/workflow/test_slurm.py::test_x") not in groups


# --- the lock --------------------------------------------------------------------------------------------------------


def test_the_last_lines_of_the_tests_name_what_failed_and_what_was_skipped(tmp_path):
    tests = "import pytest\ndef test_a(): assert 0\ndef test_b(): pytest.skip('no moon')\n"
    (tmp_path / "test_it.py").write_text(tests)
    command = [sys.executable, "-m", "pytest", "-c", ROOT / "pyproject.toml", "--rootdir", tmp_path, tmp_path]
    said = subprocess.run(command, capture_output=True, text=True).stdout.splitlines()
    assert re.fullmatch(r"FAILED \S+::test_a.*", said[-3])
    assert re.fullmatch(r"SKIPPED \[1\] \S+:3: no moon", said[-2])
    assert re.fullmatch(r"1 failed, 1 skipped in \S+s", said[-1])


@pytest.mark.parametrize(
    ("there", "works", "asked", "said"),
    [
        (True, True, [], []),
        (False, True, ["update", "install -y --no-install-recommends slurmctld slurmd slurm-client munge"], []),
        (False, False, ["update"], ["SLURM cannot be installed here, "]),
    ],
)
def test_continuous_integration_installs_slurm_where_it_can(tmp_path, programs, there, works, asked, said):
    """And ends with the tests in any case."""
    (tmp_path / "run").symlink_to(shutil.which("echo"))
    scripts = {"apt-get": f'echo "$*" >>"$0.log"; {works}'.lower()} | ({"sbatch": "exit"} if there else {})
    log = programs(scripts, ["bash", "dirname"], alone=True) / "apt-get.log"
    log.touch()
    shutil.copytree(ROOT / ".ci", tmp_path / ".ci")
    ended = subprocess.run([tmp_path / ".ci/run"], capture_output=True, text=True, check=True)
    assert [line[:32] for line in ended.stdout.splitlines()] == [*said, "test"]
    assert log.read_text().splitlines() == asked


def test_the_locked_files_follow_from_the_requirements():
    lock = module(ENVS / "lock.py")
    lines = (ENVS / "constraints.txt").read_text().splitlines()
    pins = dict(line.split("==") for line in lines if "==" in line)
    for name, text in lock.files((ENVS / "requirements.txt").read_text(), pins).items():
        assert (ENVS / name).read_text() == text, f"{name} is not what `make lock` writes"
    assert not [line for line in lines if "--" in line or " @ " in line]


@pytest.mark.parametrize(("name", "requirements"), [("cpu", "requirements.txt"), ("gpu", "requirements-gpu.txt")])
def test_the_environments_of_conda_hold_what_is_required_and_nothing_unpinned(name, requirements):
    packages = {"pip": mock.ANY}
    expected = {"channels": ["conda-forge"], "dependencies": ["python=3.11", "pip", packages]}
    environment = yaml.safe_load((ENVS / f"{name}.yaml").read_text())
    assert environment == expected
    pins = {canonicalize_name(pin.name): pin for pin in map(Requirement, environment["dependencies"][2]["pip"])}
    locked = dict(line.split("==") for line in (ENVS / "constraints.txt").read_text().splitlines() if "==" in line)
    del locked[f"faiss-{'gpu' if name == 'cpu' else 'cpu'}"]
    assert {package: str(pin.specifier) for package, pin in pins.items()} == {
        package: f"=={version}" for package, version in locked.items()
    }
    for line in (ENVS / requirements).read_text().splitlines():
        if line and not line.startswith("#"):
            required = Requirement(line)
            package = canonicalize_name(required.name)
            assert locked[package] in required.specifier and pins[package].extras == required.extras


def test_the_image_is_made_from_the_locked_files():
    """Its definition copies files that are there, and installs what `./run` installs."""
    head, *parts = re.split(r"^%(\w+)\n", (ENVS / "cdmae.def").read_text(), flags=re.MULTILINE)
    sections = dict(zip(parts[::2], parts[1::2], strict=True))
    assert re.findall(r"^(\w+): (.*)$", head, flags=re.MULTILINE) == [
        ("Bootstrap", "docker"), ("From", "python:3.11-slim"),
    ]  # fmt: skip
    copied = dict(line.split() for line in sections["files"].splitlines() if line)
    assert all((ROOT / path).exists() for path in copied)
    chosen = [*re.findall("requirements=(.*)", sections["arguments"]), *re.findall(r"requirements=(\S+)", head)]
    assert chosen == ["requirements-gpu.txt", "requirements.txt"]
    for name in chosen:
        words = sections["post"].replace("{{ requirements }}", name).split()
        assert words[:3] == ["pip", "install", "--no-cache-dir"]
        assert words[3::2] == ["-r", "-c"] and words[4::2] == [copied[f"envs/{name}"], copied["envs/constraints.txt"]]
    required = (ENVS / "requirements.txt").read_text()
    for package in re.search(r"import ([\w, ]+)", sections["test"])[1].split(", "):
        assert re.search(rf"^{package.replace('_', '-')}\b", required, flags=re.MULTILINE)
