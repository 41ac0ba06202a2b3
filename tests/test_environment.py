"""The way from a fresh clone to an environment: ./run, envs/start.py and the locked files."""

import ast
import hashlib
import importlib.util
import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from snakemake import cli
from snakemake.api import DAGApi
from snakemake.settings import types

from cdmae.errors import InputError
from workflow import commands, dry_run, overlays, targets
from workflow import start as run_start
from workflow.commands import configs

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
    (tmp_path / "envs/lock").mkdir(parents=True)
    shutil.copy(ENVS / "start.py", tmp_path / "envs")
    for path in [
        *ENVS.glob("requirements*.txt"),
        ENVS / "constraints.txt",
        *ENVS.glob("lock/*.txt"),
    ]:
        (tmp_path / "envs" / path.relative_to(ENVS)).write_text("# nothing\n")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    monkeypatch.delenv("CDMAE_DEVICE", raising=False)
    monkeypatch.delenv("CDMAE_UNLOCKED", raising=False)
    return module(tmp_path / "envs/start.py")


def test_an_old_python_can_read_the_start():
    tree = ast.parse((ENVS / "start.py").read_text(), feature_version=(3, 4))
    assert not [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.JoinedStr | ast.AnnAssign | ast.NamedExpr)
    ]
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


def test_a_full_disk_a_checkout_of_others_and_an_unknown_device_stop_the_set_up(
    start, monkeypatch, capsys
):
    with monkeypatch.context() as patch, pytest.raises(SystemExit):
        patch.setattr(
            start.shutil,
            "disk_usage",
            lambda path: SimpleNamespace(total=10**10, used=0, free=10**9),
        )
        start.set_up(["requirements.txt"])
    assert "needs about 4 GB" in capsys.readouterr().err
    assert not Path(start.VENV).exists()
    with monkeypatch.context() as patch, pytest.raises(SystemExit):
        patch.setattr(start.os, "access", lambda path, mode: path != start.ROOT)
        start.set_up(["requirements.txt"])
    assert capsys.readouterr().err.startswith(
        f"cdmae: {start.ROOT} cannot be written to, but .venv is made there; allowed"
    )
    monkeypatch.setenv("CDMAE_DEVICE", "tpu")
    with pytest.raises(SystemExit):
        start.wanted_device()
    assert "'tpu'; allowed: cpu, gpu" in capsys.readouterr().err
    monkeypatch.setenv("CDMAE_UNLOCKED", "yes")
    with pytest.raises(SystemExit):
        start.wanted_files("cpu", tests=False)
    assert "'yes'; allowed: 1" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("device", "tests", "slurm", "unlocked", "names"),
    [
        ("cpu", False, False, "", "lock/pip lock/run lock/cpu lock/torch-cpu lock/torch"),
        ("gpu", False, False, "", "lock/pip lock/run lock/gpu lock/torch"),
        ("gpu", True, True, "", "lock/pip lock/run lock/gpu lock/test lock/slurm lock/torch"),
        ("cpu", True, False, "1", "requirements constraints requirements-test"),
        ("gpu", False, True, "1", "requirements-gpu constraints requirements-slurm"),
    ],
)
def test_what_is_installed_follows_from_the_machine_and_from_what_is_asked_for(
    start, monkeypatch, device, tests, slurm, unlocked, names
):
    monkeypatch.setattr(
        start.shutil,
        "which",
        lambda name: "/usr/bin/sbatch" if slurm and name == "sbatch" else None,
    )
    monkeypatch.setenv("CDMAE_UNLOCKED", unlocked)
    assert start.wanted_files(device, tests) == [f"{name}.txt" for name in names.split()]


def test_after_the_tests_a_run_installs_nothing_and_the_tests_add_to_a_run(start):
    run, test = (start.wanted_files("cpu", tests) for tests in (False, True))
    Path(start.VENV).mkdir()
    Path(start.STAMP).write_text("\n".join(start.stamps(test)))
    assert start.stamped(run) and start.stamped(test)
    Path(start.STAMP).write_text("\n".join(start.stamps(run)))
    assert start.stamped(run) and not start.stamped(test)
    Path(start.HERE, "lock/run.txt").write_text("# something\n")
    assert not start.stamped(run)


def test_while_pip_works_it_is_told_what_it_does(start, monkeypatch, capsys):
    """Where pip says nothing for minutes, the installed packages are counted."""
    words = []
    waits = iter([False, False, True])
    clock = iter([10, 70])
    monkeypatch.setattr(start, "BEGUN", 0)
    monkeypatch.setattr(start, "time", SimpleNamespace(time=lambda: next(clock)))

    class Ended:
        def wait(self, seconds):
            words.append(
                "Downloading torch-2.9.whl (900 MB)"
                if not words
                else "Installing collected packages: a, b"
            )
            return next(waits)

    for name in ("a-1.dist-info", "b-2.dist-info", "a"):
        Path(start.VENV, "lib/python3.12/site-packages", name).mkdir(parents=True)
    start.report(words, 190, Ended())
    assert capsys.readouterr().err.splitlines() == [
        "cdmae: 0:10  Downloading torch-2.9.whl (900 MB)",
        "cdmae: 1:10  2 of about 190 packages installed",
    ]


@pytest.mark.workflow  # makes a virtual environment: some seconds
def test_set_up_once_again_after_a_change_and_on_after_a_failure(
    start, monkeypatch, capsys, tmp_path
):
    files = start.wanted_files("cpu", tests=False)
    start.set_up(files)
    stamp = Path(start.STAMP).read_text()
    made = os.lstat(start.PYTHON).st_ctime_ns
    with monkeypatch.context() as patch:
        patch.setattr(start, "install", lambda files: pytest.fail("installed twice"))
        start.set_up(files)
    capsys.readouterr()

    lock = Path(start.HERE, "lock/run.txt")
    right = wheel(tmp_path, "right")
    wrong = wheel(tmp_path, "wrong")
    wrong = wrong.translate(str.maketrans("0123456789", "1234567890"))
    machine = f"Python {sys.version_info[0]}.{sys.version_info[1]} on {platform.machine()}"
    for line, said in {
        f"missing==1 --hash=sha256:{right}": f"pip finds no locked package for {machine}; CDMAE_UNLOCKED=1 ",
        f"wrong==1 --hash=sha256:{wrong}": "this file is not the locked one and was not installed; to install it",
        "right==1": "run again to resume",
    }.items():
        lock.write_text(f"--require-hashes\n{line}\n")
        with pytest.raises(SystemExit):
            start.set_up(files)
        failed = capsys.readouterr().err
        assert said in failed and "pip failed; the end of its output" in failed
        assert not Path(start.STAMP).exists()
    assert not list(tmp_path.glob(".venv/lib/*/site-packages/*-1.dist-info"))

    lock.write_text(f"--require-hashes\nright==1 --hash=sha256:{right}\n")
    Path(start.HERE, "lock/torch.txt").write_text("torch==2\n")
    Path(start.HERE, "lock/torch-cpu.txt").write_text("torch==2+cpu\n")
    wheel(tmp_path, "torch", "2")
    start.set_up(files)
    assert "pip finds no locked CPU build of torch and installs PyPI's" in capsys.readouterr().err
    assert {path.name for path in tmp_path.glob(".venv/lib/*/site-packages/[rt]*.dist-info")} == {
        "right-1.dist-info", "torch-2.dist-info",
    }  # fmt: skip

    lock.write_text("# nothing\n")
    for name in ("torch", "torch-cpu"):
        Path(start.HERE, f"lock/{name}.txt").write_text("# nothing\n")
    start.set_up(files)
    assert Path(start.STAMP).read_text() == stamp
    assert os.lstat(start.PYTHON).st_ctime_ns == made, "the environment was made again"

    monkeypatch.setenv("CDMAE_UNLOCKED", "1")
    Path(start.HERE, "requirements.txt").write_text("wrong\n")
    start.set_up(start.wanted_files("cpu", tests=False))
    assert list(tmp_path.glob(".venv/lib/*/site-packages/wrong-1.dist-info"))


def wheel(folder, name, version="1"):
    """Make an empty wheel, and give its SHA-256."""
    info = f"{name}-{version}.dist-info"
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(
            f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
        )
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "")
    return hashlib.sha256(path.read_bytes()).hexdigest()


# --- ./run ----------------------------------------------------------------------------------------


def test_the_help_of_run_names_its_commands_without_an_environment(tmp_path):
    shutil.copy(ROOT / "run", tmp_path)
    for option in ("--help", "-h", "help"):
        found = subprocess.run(
            ["/bin/sh", tmp_path / "run", option], capture_output=True, text=True
        )
        assert found.returncode == 0 and not found.stderr
        for name in (*commands.COMMANDS, "test", "--help-snakemake", "COMMAND --help"):
            assert f"\n  ./run {name}" in found.stdout
        assert found.stdout.endswith("the first suitable one is taken.\n")
    assert not (tmp_path / ".venv").exists()


@pytest.fixture
def refusal(monkeypatch):
    """Return a function that runs `workflow/start.py` and returns its error message."""
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
    """Return a function that runs `workflow/start.py` and returns Snakemake's targets and files."""
    asked = []
    monkeypatch.setattr(cli, "args_to_api", lambda options, _: asked.append(options) or True)
    monkeypatch.chdir(ROOT)

    def run(*words):
        with pytest.raises(SystemExit) as ended:
            run_start.main(list(words))
        assert ended.value.code == 0
        assert not asked[-1].configfile, "Snakemake would run code in them"
        return asked[-1].targets, list(overlays.FILES)

    return run


@pytest.mark.parametrize(
    ("kept", "system", "missing", "what"),
    [
        ("true", ["--system", "cdmae-stage3"], "vectors/cdmae-stage3/pydocs", "./run"),
        (
            "false",
            ["--system", "cdmae-stage3"],
            "vectors/cdmae-stage3/pydocs",
            "./run {}/vectors/cdmae-stage3/pydocs",
        ),
        ("true", [], "measures/bm25.tsv", "./run"),  # by which it would choose
    ],
)
def test_search_says_how_to_get_what_is_missing(tmp_path, refusal, kept, system, missing, what):
    (tmp_path / "trained/cdmae-stage3").mkdir(parents=True)
    config = tmp_path / "own.yaml"
    config.write_text(f"results: {tmp_path}\nevaluation: {{keep_vectors: {kept}}}\n")
    said = f"{tmp_path}/{missing} does not exist yet; {what.format(tmp_path)} with the same config files makes it"
    assert refusal("search", "word", *system, "--configfile", str(config)) == said


@pytest.mark.parametrize("word", ["all", "report", "latency", "README.md", "else/where"])
def test_targets_files_and_options_are_handed_to_snakemake(word, handed, rules):
    for profile in ("workflow/profiles/default", "none"):
        assert handed("-n", word, "--cores", "2", "--workflow-profile", profile)[0] == [word]
    targets.check(rules, configs.configured([]))


WORD = "neither a command nor a rule nor a file; "
PATH = "not made by this config; "
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
        ("xyz", WORD + "./run --help lists the commands"),
        (
            "results/measures/cdmae-stag3.tsv",
            PATH + "did you mean results/measures/cdmae-stage3.tsv?",
        ),
        ("./results/encoders/cdmea/", PATH + "did you mean results/encoders/cdmae?"),
        (
            "results/trec/bm25/pydocs.tset.run",
            PATH + "did you mean results/trec/bm25/pydocs.test.run?",
        ),
        (f"{ROOT}/results/qqq", PATH + "./run -n lists its results"),
        ("results//encoders/cdmea", PATH + "did you mean results/encoders/cdmae?"),
        ("results/masked_terms/mae.json", PATH + "did you mean results/masked_terms/cdmae.json?"),
        ("mine.yaml", PATH + "put config files after --configfile"),
        ("config/smoke.yaml", PATH + "put config files after --configfile"),
        ("results/tables/table_main.svg", PATH + "did you mean results/tables/table_main.csv?"),
        ("results/trained/bm25", PATH + "did you mean results/trained/"),
        (
            "results/negatives/cdmae-stage3.pydocs.train.parquet",
            PATH + "did you mean results/negatives/",
        ),
        ("pretrain", "a rule that makes " + SEVERAL + "encoders/"),
        ("mine", "a rule that makes " + SEVERAL + "negatives/cdmae-stage1.pydocs.train.parquet"),
        ("results/report", "a folder of " + SEVERAL + "report/index.html"),
        ("./results/", "a folder of " + SEVERAL),
    ],
)
def test_what_no_job_makes_is_refused_with_what_may_have_been_meant(
    target, said, rules, monkeypatch
):
    monkeypatch.chdir(ROOT)
    (name,) = targets.ask([target])
    with pytest.raises(InputError) as refused:
        targets.check(rules, configs.configured([]))
    assert str(refused.value).startswith(f"{name} is {said}")


@pytest.mark.parametrize("place", ["{}", "./{}", f"{ROOT}/{{}}", "results/../{}", "{}/"])
def test_a_result_may_be_named_by_any_path_to_it(place, handed, tmp_path):
    result = "results/encoders/cdmae"
    assert handed("-n", place.format(result))[0] == [result]
    assert handed(place.format(result), "--config", "seed=42")[0] == [result], (
        "what only Snakemake checks, too"
    )
    config = tmp_path / "own.yaml"
    config.write_text(f"results: {tmp_path}/./out/\n")
    targets, _ = handed(f"{tmp_path}//out/encoders/cdmae", "--configfile", str(config))
    assert targets == [f"{tmp_path}/out/encoders/cdmae"]


def test_behind_the_config_files_stand_targets(handed, tmp_path, monkeypatch):
    """Snakemake would read targets as configs; configs are relative to the working directory."""
    (tmp_path / "own.yaml").write_text("seed: 42\n")
    monkeypatch.chdir(tmp_path)
    words = [
        "--configfile",
        "own.yaml",
        f"{ROOT}/config/smoke.yaml",
        "results/smoke/encoders/cdmae",
        "report",
    ]
    files = [tmp_path / "own.yaml", ROOT / "config/smoke.yaml"]
    assert handed(*words) == (["results/smoke/encoders/cdmae", "report"], files)


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        (
            "collections: {a: {source: beir, path: no/where}}",
            "collections.a: path is no/where, and {} is not there",
        ),
        (
            "starts: {a: {checkpoint: ./no/where}}",
            "starts.a.checkpoint is ./no/where, and {} is not a folder",
        ),
    ],
)
@pytest.mark.parametrize("word", ["-n", "plan"])
def test_a_relative_path_of_a_config_begins_at_the_checkout(
    setting, said, word, tmp_path, refusal, monkeypatch
):
    """A folder of the same name does not count, wherever the config file is."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "no/where").mkdir(parents=True)
    (tmp_path / "own.yaml").write_text(f"standalone: true\n{setting}\n")
    sentence = f"{tmp_path}/own.yaml, line 2: {said.format(ROOT / 'no/where')}; "
    assert refusal(word, "--configfile", "own.yaml").startswith(sentence)


@pytest.mark.parametrize(
    "line",
    [
        "-n --configfile code.yaml",
        "-n --configfile code.yaml null.yaml",
        "-n --configfile code.yaml --config __use_yte__=null",
        "plan --configfile code.yaml null.yaml",
    ],
)
def test_a_config_file_runs_no_code(line, tmp_path, refusal, monkeypatch):
    """Snakemake would run code in such a file, even if another file removes the key."""
    code = f'__use_yte__: true\nreport: {{title: \'?open("{tmp_path}/ran", "w")\'}}\n'
    (tmp_path / "code.yaml").write_text(code)
    (tmp_path / "null.yaml").write_text("__use_yte__: null\n")
    monkeypatch.chdir(tmp_path)
    said = f"{tmp_path}/code.yaml, line 1: the key __use_yte__"
    assert refusal(*line.split()).startswith(said)
    assert not (tmp_path / "ran").exists()


def test_snakemake_reads_no_config_file_and_jobs_of_a_cluster_get_them(monkeypatch):
    monkeypatch.setattr(
        types, "load_configfile", lambda file: pytest.fail(f"{file} was read by Snakemake")
    )
    smoke = ROOT / "config/smoke.yaml"
    job = next(
        iter(
            dry_run.dry_run([str(smoke)], ["results/smoke/collections/pydocs/about.json"]).values()
        )
    )
    assert (
        f"--configfiles {smoke}" in job.dag.workflow.spawned_job_args_factory.get_configfiles_arg()
    )


@pytest.mark.parametrize("name", ["search", "importance"])
def test_words_after_a_config_file_are_words(name, tmp_path, monkeypatch):
    overlay = tmp_path / "own.yaml"
    more = tmp_path / "more.yaml"
    overlay.write_text("seed: 3\n")
    more.write_text("seed: 4\n")
    monkeypatch.chdir(tmp_path)
    Path("lists").touch()  # a word that is a file, too
    words, options = commands.read(name, ["--configfile", "own.yaml", "sorted", "lists"])
    assert (words, options["configfile"]) == (["sorted", "lists"], [str(overlay)])
    words, options = commands.read(
        name, ["sorted", "--configfile", str(overlay), "more.yaml", "lists"]
    )
    assert (words, configs.configured(options["configfile"]).seed) == (["sorted", "lists"], (4,))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            "search",
            'search needs a text, for example ./run search "fit a polynomial to data points"',
        ),
        ("search ''", "search needs a text, for example ./run search "),
        ("importance --configfile SMOKE", "importance needs a text, for example ./run importance "),
        ("search caf\udce9", r"the argument 'caf\udce9' is not UTF-8; allowed: text"),
        (
            "compare a.run b.run --qrels q --measures RR@10,R@5,RR@10",
            "--measures has RR@10 twice; allowed: each once",
        ),
        ("serve --port 70000", "--port is 70000; allowed: a whole number from 0 to 65535"),
        ("serve --queries q.txt", "--collection and --queries choose what is judged; add --judge"),
        (
            "search --depth 0 lists",
            "--depth is 0; allowed: a whole number from 1 to 1000 (evaluation.depth)",
        ),
        (
            "search --depth 2000 lists",
            "--depth is 2000; allowed: a whole number from 1 to 1000 (evaluation",
        ),
        (
            "search --dept 3 lists",
            "unrecognized arguments: --dept; ./run search --help lists the options",
        ),
        (
            "plan --cores many",
            "argument --cores: invalid int value: 'many'; ./run plan --help lists the opt",
        ),
        ("adopt --configfile SMOKE mine", "mine is not a config file; ./run adopt --help lists "),
        (
            "search word --configfile bare.yaml",
            "the config has no system that can answer queries; give the --confi",
        ),
        (
            "importance word --configfile bare.yaml",
            "no encoder of the config has importance-aware masks; give ",
        ),
        (
            "-n --configfile a.yaml --configfile b.yaml",
            "--configfile is given twice, and only the last one would count",
        ),
        (
            "--workflow-profile nosuch -n",
            "--workflow-profile is nosuch; allowed: a folder with a profile.yaml",
        ),
        (
            "-n --workflow-profile=tests",
            "--workflow-profile is tests; allowed: a folder with a profile.yaml, or",
        ),
        (
            "-n --cores two",
            "-n --cores two: Error parsing number of cores (--cores, -c): must be integer or",
        ),
        ("-n --cores 0", "--cores is 0; allowed: a whole number from 1"),
        ("-n --jobs -2", "--jobs is -2; allowed: a whole number from 1"),
        ("-n --resources gpu=-1", "-n --resources gpu=-1: Resource 'gpu' was given value '-1'"),
        ("CDMAE_DEVICE=tpu -n", "the environment variable CDMAE_DEVICE is tpu; allowed"),
        ("-n --config seed --configfile SMOKE", "-n --config seed --configfile "),
        (
            "-n --config seed=3 --configfile no.yaml",
            "the config file {}/no.yaml cannot be read: No such file",
        ),
        ("serch foo", SERCH),
        ("--quiet rules progress -n serch", SERCH),
        ("--rerun-incomplete --cores=2 serch", SERCH),
        ("--until pretrain -n all serch", SERCH),
        ("plan serch", SERCH),
        ("-n --config seed=42 --configfile SMOKE serch", SERCH),
    ],
)
def test_what_cannot_be_done_is_refused_in_a_sentence(line, said, refusal, tmp_path, monkeypatch):
    (tmp_path / "bare.yaml").write_text("standalone: true\n")
    monkeypatch.chdir(tmp_path)
    words = shlex.split(line.replace("SMOKE", str(ROOT / "config/smoke.yaml")))
    if re.match("[A-Z]", line):
        monkeypatch.setenv(*words.pop(0).split("="))
    assert refusal(*words).startswith(said.format(tmp_path))


@pytest.mark.parametrize("name", ["plan", "adopt", "search", "serve", "importance", "sizes"])
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


def test_a_file_of_tests_stays_in_one_process(tmp_path):
    """The tests of a file share its fixtures."""
    options = module(ENVS / "start.py").IN_PARALLEL
    command = [sys.executable, "-m", "pytest", "-c", ROOT / "pyproject.toml", "-p", "conftest"]
    command += [*options, "-n", "2", "-vv", "-o", "console_output_style=classic"]
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")
    }
    environment["PYTHONPATH"] = f"{ROOT}:{ROOT / 'tests'}"
    files = ("test_one.py", "test_two.py")
    for file in files:
        (tmp_path / file).write_text("def test_a(): pass\ndef test_b(): pass\n")
    found = subprocess.run(
        [*command, "--rootdir", tmp_path, *files],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
    )
    ran = set(re.findall(r"^\[(gw\d)\] PASSED (\S+)::", found.stdout, flags=re.MULTILINE))
    assert {file for _, file in ran} == set(files), found.stdout
    assert len(ran) == 2, "each file in one process only"


# --- the lock -------------------------------------------------------------------------------------


def test_the_last_lines_of_the_tests_name_what_failed_and_what_was_skipped(tmp_path):
    tests = "import pytest\ndef test_a(): assert 0\ndef test_b(): pytest.skip('no moon')\n"
    (tmp_path / "test_it.py").write_text(tests)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-c",
        ROOT / "pyproject.toml",
        "--rootdir",
        tmp_path,
        tmp_path,
    ]
    said = subprocess.run(command, capture_output=True, text=True).stdout.splitlines()
    assert re.fullmatch(r"FAILED \S+::test_a.*", said[-3])
    assert re.fullmatch(r"SKIPPED \[1\] \S+:3: no moon", said[-2])
    assert re.fullmatch(r"1 failed, 1 skipped in \S+s", said[-1])


@pytest.mark.parametrize(
    ("there", "works", "asked", "said"),
    [
        (True, True, [], []),
        (
            False,
            True,
            [
                "update",
                "install -y --no-install-recommends slurmctld slurmd slurm-client munge",
                "update",
                "install -y --no-install-recommends chromium chromium-driver",
            ],
            [],
        ),
        (
            False,
            False,
            ["update", "update"],
            ["SLURM cannot be installed here, ", "Chromium cannot be installed her"],
        ),
    ],
)
def test_continuous_integration_installs_slurm_and_chromium_where_it_can(
    tmp_path, programs, there, works, asked, said
):
    """Then audits the packages, and ends with the tests in any case."""
    (tmp_path / "run").symlink_to(shutil.which("echo"))
    (tmp_path / ".venv/bin").mkdir(parents=True)
    (tmp_path / ".venv/bin/python").symlink_to(shutil.which("echo"))
    scripts = {"apt-get": f'echo "$*" >>"$0.log"; {works}'.lower()} | (
        {"sbatch": "exit", "chromedriver": "exit"} if there else {}
    )
    log = programs(scripts, ["bash", "dirname"], alone=True) / "apt-get.log"
    log.touch()
    shutil.copytree(ROOT / ".ci", tmp_path / ".ci")
    ended = subprocess.run([tmp_path / ".ci/run"], capture_output=True, text=True, check=True)
    steps = ["test --version", "envs/audit.py sbom.json", "test"]
    assert [line[:32] for line in ended.stdout.splitlines()] == [*said, *steps]
    assert log.read_text().splitlines() == asked


def test_the_locked_files_follow_from_the_requirements():
    lock = module(ENVS / "lock.py")
    lines = (ENVS / "constraints.txt").read_text().splitlines()
    pins = dict(line.split("==") for line in lines if "==" in line)
    for name, text in lock.files((ENVS / "requirements.txt").read_text(), pins).items():
        assert (ENVS / name).read_text() == text, f"{name} is not what `make lock` writes"
    assert not [line for line in lines if "--" in line or " @ " in line]


def versions(*names):
    """The packages that lists of envs/lock name, with version and hashes."""
    text = "".join((ENVS / f"lock/{name}.txt").read_text() for name in names)
    blocks = re.findall(r"^([\w.-]+)==([^\s;]+)(.*(?:\n .*)*)", text, flags=re.MULTILINE)
    return {
        name: (version, re.findall("--hash=sha256:([0-9a-f]{64})", rest))
        for name, version, rest in blocks
    }


def test_what_is_locked_has_the_pinned_versions_and_hashes():
    lists = sorted(path.stem for path in ENVS.glob("lock/*.txt"))
    assert lists == ["cpu", "gpu", "pip", "run", "slurm", "test", "torch", "torch-cpu"]
    for name in lists:
        text = (ENVS / f"lock/{name}.txt").read_text()
        assert "\n--require-hashes\n--only-binary :all:\n--no-binary pyserini\n" in text
        assert all(hashes for _, hashes in versions(name).values())
    pins = dict(
        line.split("==") for line in (ENVS / "constraints.txt").read_text().splitlines()[1:]
    )
    locked = versions("run", "cpu", "gpu", "torch")
    assert {name: pins[name] for name in locked.keys() & pins} == {
        name: version for name, (version, _) in locked.items() if name in pins
    }
    assert versions("torch-cpu")["torch"][0] == f"{pins['torch']}+cpu"
    assert versions("torch-cpu")["torch"][1][0] not in versions("torch")["torch"][1]


@pytest.mark.parametrize("device", ["cpu", "gpu"])
def test_what_is_required_is_locked_and_what_pyserini_alone_requires_is_not(device):
    required = {"cpu": "requirements", "gpu": "requirements-gpu"}[device]
    locked = versions("run", device, "torch")
    for name, own in (
        (required, ()),
        ("requirements-test", ["test"]),
        ("requirements-slurm", ["slurm"]),
    ):
        for line in (ENVS / f"{name}.txt").read_text().splitlines():
            if line and not line.startswith("#"):
                asked = Requirement(line)
                version, _ = (locked | versions(*own))[canonicalize_name(asked.name)]
                assert version in asked.specifier
    assert not locked.keys() & {
        "flask",
        "openai",
        "datasets",
        "pytest",
        "connection-pool",
    }


def test_of_what_was_left_out_nothing_is_imported():
    """pyserini.pyclass and Snakemake load without the requirements that the lock leaves out."""
    left_out = [
        "connection_pool",
        "flask",
        "openai",
        "onnxruntime",
        "datasets",
        "tiktoken",
        "uvicorn",
    ]
    program = f"import sys; sys.modules.update(dict.fromkeys({left_out})); "
    program += "import snakemake.cli, snakemake.api, snakemake.storage, snakemake.scheduling.job_scheduler; "
    program += "from cdmae.retrieval import lucene; lucene._java(); print('loaded')"
    assert (
        subprocess.run(
            [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True
        ).stdout
        == "loaded\n"
    )


@pytest.fixture
def audit():
    """envs/audit.py, which needs packages that only the tests do."""
    return module(ENVS / "audit.py")


ADVISORY = {"id": "PYSEC-1", "aliases": ["CVE-2"], "fix_versions": ["2.0"]}
AUDITED = [
    {"name": "torch", "version": "1", "vulns": [ADVISORY]},
    {"name": "numpy", "version": "2", "vulns": []},
]
UNKNOWN = {"name": "faiss", "skip_reason": "not found"}


@pytest.mark.parametrize(
    ("answer", "listed", "code", "said"),
    [
        (
            AUDITED,
            "# PYSEC-1\n",
            1,
            ["torch 1 has PYSEC-1, fixed in 2.0", "2 packages audited, 1 advisories without"],
        ),
        (AUDITED, "PYSEC-1\n", 1, ["torch 1 has", "2 packages"]),
        (
            AUDITED,
            "CVE-2 torch.load is not called on files of others\n",
            0,
            ["2 packages audited, 0 advisories"],
        ),
        (
            [*AUDITED[1:], UNKNOWN],
            "",
            0,
            ["the advisory service does not know faiss", "1 packages audited, 0"],
        ),
        (
            [UNKNOWN, UNKNOWN],
            "",
            0,
            ["NOT AUDITED: the advisory service cannot be reached (it knows none"],
        ),
        (
            "requests.ConnectionError: no route",
            "",
            0,
            ["NOT AUDITED: the advisory service cannot be reached (requests.C"],
        ),
    ],
)
def test_an_advisory_without_a_reason_fails_and_no_answer_is_said(
    audit, answer, listed, code, said, tmp_path, monkeypatch, capsys
):
    text, error = (
        ("", answer) if isinstance(answer, str) else (json.dumps({"dependencies": answer}), "")
    )

    def pip_audit(command, **_):
        Path(command[command.index("--output") + 1]).write_text(text)
        return SimpleNamespace(stderr=f"Traceback\n{error}\n")

    monkeypatch.setattr(audit, "HERE", tmp_path)
    monkeypatch.setattr(audit.subprocess, "run", pip_audit)
    (tmp_path / "advisories.txt").write_text(listed)
    assert audit.main(str(tmp_path / "sbom.json")) == code
    lines = [
        line.removeprefix("envs/audit.py: ") for line in capsys.readouterr().out.splitlines()[1:]
    ]
    assert [line[: len(start)] for line, start in zip(lines, said, strict=True)] == said


def test_a_pip_audit_that_fails_for_another_reason_is_not_passed_over(audit, tmp_path, monkeypatch):
    monkeypatch.setattr(audit, "LOCK", tmp_path)
    (tmp_path / "run.txt").write_text("numpy==1\n")
    with pytest.raises(SystemExit, match="pip-audit failed: .*hash"):
        audit.main(str(tmp_path / "sbom.json"))


def test_the_bill_of_materials_lists_what_a_user_installs(audit, tmp_path, monkeypatch):
    monkeypatch.setattr(audit, "ask", lambda: [UNKNOWN])
    audit.main(str(tmp_path / "sbom.json"))
    bill = json.loads((tmp_path / "sbom.json").read_text())
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    packages = versions("pip", "run", "cpu", "gpu", "torch", "slurm")
    assert {each["name"]: each["version"] for each in bill["components"]} == {
        name: version for name, (version, _) in packages.items()
    }


@pytest.mark.parametrize(
    ("name", "requirements"), [("cpu", "requirements.txt"), ("gpu", "requirements-gpu.txt")]
)
def test_the_environments_of_conda_hold_what_is_required_and_nothing_unpinned(name, requirements):
    packages = {"pip": mock.ANY}
    expected = {"channels": ["conda-forge"], "dependencies": ["python=3.11", "pip", packages]}
    environment = yaml.safe_load((ENVS / f"{name}.yaml").read_text())
    assert environment == expected
    pins = {
        canonicalize_name(pin.name): pin
        for pin in map(Requirement, environment["dependencies"][2]["pip"])
    }
    locked = dict(
        line.split("==")
        for line in (ENVS / "constraints.txt").read_text().splitlines()
        if "==" in line
    )
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
    chosen = [*re.findall("device=(.*)", sections["arguments"]), *re.findall(r"device=(\S+)", head)]
    assert chosen == ["gpu", "cpu"]
    for device in chosen:
        calls = (
            sections["post"]
            .replace("{{ device }}", device)
            .replace("\\\n", "")
            .strip()
            .splitlines()
        )
        lists = [re.findall(r"-r /opt/(lock/[\w-]+\.txt)", call) for call in calls]
        assert all(
            call.strip().startswith("pip install --no-cache-dir --no-deps ") for call in calls
        )
        assert lists == [["lock/pip.txt"], ["lock/run.txt", f"lock/{device}.txt", "lock/torch.txt"]]
        assert all((ENVS / path).exists() for path in lists[0] + lists[1])
    required = (ENVS / "requirements.txt").read_text()
    for package in re.search(r"import ([\w, ]+)", sections["test"])[1].split(", "):
        assert re.search(rf"^{package.replace('_', '-')}\b", required, flags=re.MULTILINE)
