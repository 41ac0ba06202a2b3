"""The way from a fresh clone to an environment: ./run, envs/start.py and the locked files."""

import importlib.util
import re
import shlex
from pathlib import Path

import pytest
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


# --- ./run ----------------------------------------------------------------------------------------


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
    sentence = f"{tmp_path}/own.yaml, line 2: {said.format(ROOT / 'no/where')}; allowed: a"
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
    said = (
        f"{tmp_path}/code.yaml, line 1: the key __use_yte__ makes a config file run code; remove it"
    )
    assert refusal(*line.split()) == said
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
    assert (words, configs.configured(options["configfile"]).seed) == (["sorted", "lists"], 4)


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


@pytest.mark.parametrize("name", ["plan", "adopt", "search", "serve", "importance"])
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
