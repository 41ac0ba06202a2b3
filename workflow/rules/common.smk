# Reads and checks the config before any rule is defined, and helps the rules to fill in their paths and parameters.
#
# How to read a rule: a *pattern* such as "<results>/tokens/{start}/{collection}" is a path with gaps. <results>, <logs>
# and <benchmarks> are folders of this run. A gap in an output, such as {system}, is a *wildcard*: its value comes from
# the path that is asked for. Any other gap in an input is a *column*: every entry of the config has a row in one of the
# tables below, and of_system, of_encoder, of_start and of_collection fill in a pattern from the row that the rule's
# first wildcard names. In a rule that makes "<results>/trained/{system}", of_system("<results>/encoders/{encoder}") is
# the encoder of that system. A column with a list gives several paths, an empty column none; {target} and {collection},
# where they are no wildcards, are all that are evaluated. The parameters `settings` and `code` are mappings with
# everything that a result depends on besides its inputs: Snakemake records both and runs a job again when one differs.
# Other parameters are functions of `input` or `output`, which are no such reason.

import os
import shlex
import signal
import sys
from contextlib import contextmanager
from functools import cache, partial
from os.path import dirname
from pathlib import Path

from snakemake.settings.types import DeploymentMethod
from snakemake.utils import min_version

min_version("9.20")
sys.path.insert(0, str(workflow.basedir))

from cdmae.config import systems
from cdmae.config.load import gather, load
from cdmae.errors import InputError, said
from cdmae.plan import sizes
from cdmae.plan.work import Job, Planned, asked
from workflow import overlays
from workflow.circumstances import STARTED, now
from workflow.facts import FIGURES, TABLES, card, exhibit, facts, inputs
from workflow.fingerprint import fingerprint
from workflow.recorded import plain
from workflow.state import key_of
from workflow.surroundings import check_records, device_here, image_here, put_python_first
from workflow.targets import check


@contextmanager
def in_a_sentence():
    """End the process with the sentence of an `InputError`; Snakemake would put its own words around an `Exception`."""
    try:
        yield
    except InputError as error:
        raise SystemExit(said(error)) from error


with in_a_sentence():
    device = device_here()
    default = Path(workflow.basedir, "config/config.yaml")
    config_files = overlays.of(workflow)
    settings = load(gather(default, config_files, workflow.config_settings.config))
    overlays.pass_on(workflow, config_files)
    if workflow.is_main_process:  # once a run, not in every job
        os.environ[STARTED] = now()
        check_records(Path(workflow.basedir))
        sizes.check(settings)
results = os.path.normpath(settings.results)

# Every command runs from the checkout with this process as its parent: killed together with Snakemake, a job saves its
# state and ends (cdmae/cli.py), instead of going on beside the next run. `tee -i` outlives a Ctrl-C to log its end.
# The progress bars of other libraries are off: ours has lines. No library reports a model's name to a service, or asks a
# question on the terminal: standard input is empty.
shell.executable("bash")
shell.prefix(
    f"set -euo pipefail; export PYTHONPATH={shlex.quote(str(workflow.basedir))} CDMAE_PARENT={os.getpid()}"
    " TQDM_DISABLE=1 DISABLE_SAFETENSORS_CONVERSION=1 HF_HUB_DISABLE_TELEMETRY=1; exec </dev/null; "
)

# Jobs run with the Python that runs Snakemake, also where its environment is not activated. Environments of conda and
# images have their own.
if workflow.deployment_settings.deployment_method.isdisjoint(
    {DeploymentMethod.CONDA, DeploymentMethod.APPTAINER}
):
    put_python_first()

# SLURM warns all processes of a job before its time limit. Trainers save their state upon it
# (cdmae/training/setup.py); this process, the shell and tee would die of it and take the trainer along. What they start
# inherits that it is ignored.
signal.signal(signal.SIGUSR1, signal.SIG_IGN)


# For --sdm apptainer: the image that envs/cdmae.def makes, or another one.
if DeploymentMethod.APPTAINER in workflow.deployment_settings.deployment_method:
    with in_a_sentence():
        image = image_here(Path(workflow.basedir))

    container: image


# --- paths -----------------------------------------------------------------------------------------------------------


pathvars:
    results=results,
    logs="<results>/logs",
    benchmarks="<results>/benchmarks",


collection_rows = {
    name: {
        "files": list(map(str, entry.settings.depends())),
        "threads": entry.settings.threads(),
        "length": settings.evaluation.lengths.get(
            name, 0
        ),  # where systems cut its texts; 0: at their own lengths
    }
    for name, entry in settings.collections.items()
}
start_rows = {
    name: {"vocabulary": start.collection, "checkpoint": systems.model_files(start.checkpoint)}
    for name, start in settings.starts.items()
}
encoder_rows = systems.encoders(settings)
system_rows = systems.systems(settings)
evaluated = list(dict.fromkeys(name for name, _ in systems.targets(settings)))
TARGETS = [f"{collection}.{split}" for collection, split in systems.targets(settings)]
COLLECTION_FILES = ("passages.parquet", "queries.parquet", "qrels.parquet", "about.json")
KEPT = settings.evaluation.keep_vectors


def of(rows, pattern):
    """Fill in a pattern from the row of the first wildcard."""

    def paths(wildcards):
        columns = {
            "target": TARGETS,
            "collection": evaluated,
            **rows[wildcards[0]],
            **dict(wildcards.items()),
        }
        return expand(
            pattern, **{key: [] if value == "" else value for key, value in columns.items()}
        )

    return paths


of_collection = partial(of, collection_rows)
of_start = partial(of, start_rows)
of_encoder = partial(of, encoder_rows)
of_system = partial(of, system_rows)


def folder(name):
    """Return the folder of an input that is a list of files; an empty one gives an empty text."""
    return lambda wildcards, input: dirname(next(iter(input[name]), ""))


def targets_of(wildcards):
    """List the (collection, split) of a job: that of its wildcards, or all that are evaluated."""
    if "split" in wildcards.keys():
        return [(wildcards.collection, wildcards.split)]
    return systems.targets(settings)


def only(names):
    """Constrain a wildcard to some names; without names nothing matches."""
    return "|".join(sorted(names)) or "(?!)"


def of_kind(*kinds):
    """Constrain a wildcard to the systems of some kinds."""
    return only(systems.of_kind(settings, *kinds))


wildcard_constraints:
    collection=only(settings.collections),
    start=only(settings.starts),
    importance=only(settings.importance),
    encoder=only(settings.encoders),
    system=only(settings.systems),
    split=only({split for *_, split in systems.mined(settings)}),


# --- what a result depends on besides its inputs ---------------------------------------------------------------------


def settings_of(rows):
    """Return the settings of the entry that the first wildcard names."""
    return lambda wildcards: plain(rows[wildcards[0]])


@cache
def fingerprints(script, modules):
    """Map the modules behind a script, and those that settings name, to their fingerprints."""
    with in_a_sentence():
        return fingerprint(f"workflow/scripts/{script}.py", modules)


def code(script, modules=None):
    """Map the modules behind a script to their fingerprints; `modules`: by entry, those that its settings name."""
    return lambda wildcards: fingerprints(script, tuple(modules[wildcards[0]]) if modules else ())


def state(rule, rows, modules=None):
    """Return the folder of a training's states, and a hash of its settings and code (workflow/state.py)."""
    settings_now = settings_of(rows)
    code_now = code(rule, modules)

    def folder_and_key(wildcards, output):
        folder = f"{results}/state/{rule}/{Path(output[0]).name}"
        return [folder, key_of([settings_now(wildcards), code_now(wildcards)])]

    return folder_and_key


def where(wildcards):
    """List the folders and splits of the collections that a job searches or measures."""
    targets = targets_of(wildcards)
    return {
        "collections": [f"{results}/collections/{collection}" for collection, _ in targets],
        "splits": [split for _, split in targets],
    }


def lengths(wildcards):
    """List where the texts of these collections are cut; 0: at a system's own length."""
    return [collection_rows[collection]["length"] for collection, _ in targets_of(wildcards)]


def depth(wildcards):
    """Count the passages that a run keeps of each query: over training queries as many as a training asks for."""
    if "split" not in wildcards.keys():
        return settings.evaluation.depth
    return systems.mined(settings)[wildcards.system, wildcards.collection, wildcards.split]


def batches(wildcards, output):
    """List the queries that stages take per step: only checked, and so no reason to make the collection again."""
    return plain(systems.batches(settings, Path(output[0]).parent.name))


def length(wildcards):
    """Return the length at which passages are cut; 0: the system's own, which an external one may name."""
    own = system_rows[wildcards.system].get("passage_length", 0)
    return collection_rows[wildcards.collection]["length"] or own


def encoding(wildcards):
    """List the settings of vectors, with the model of an external retriever."""
    row = system_rows[wildcards.system]
    return plain(
        {"length": length(wildcards)}
        | {key: row[key] for key in ("model", "passage_prompt", "head", "engine") if key in row}
    )


def searching(wildcards):
    """List the settings of a retriever's search."""
    return plain({**where(wildcards), "lengths": lengths(wildcards), "depth": depth(wildcards)})


def searching_external(wildcards):
    """List the settings of an external retriever's search."""
    row = system_rows[wildcards.system]
    keys = ("model", "head", "query_length", "passage_length", "query_prompt", "passage_prompt")
    own = {key: row[key] for key in keys}
    return plain({**searching(wildcards), **own})


def model_of(name):
    """List the files of an external retriever's model, or the folder of a trained one."""
    row = system_rows[name]
    return row["model_files"] if "model_files" in row else [f"{results}/trained/{name}"]


def searching_sparse(wildcards):
    """List the settings that decide a sparse retriever's queries, and where they are."""
    row = system_rows[wildcards.system]
    keys = ("kind", "model", "head", "query_length", "query_prompt")
    system = {"model": f"{results}/trained/{wildcards.system}"}
    system |= {key: row[key] for key in keys if key in row}
    names = [collection for collection, _ in targets_of(wildcards)]
    return plain(
        {**where(wildcards), "lengths": lengths(wildcards), "names": names, "system": system}
    )


def searching_bm25(wildcards):
    """List the settings of a search by BM25."""
    row = system_rows[wildcards.system]
    weights = {"k1": row["k1"], "b": row["b"]}
    return plain({**where(wildcards), "depth": depth(wildcards), **weights})


def reranking(wildcards):
    """List the settings of a reranker, which has a depth of its own."""
    return plain({**searching(wildcards), "depth": system_rows[wildcards.system]["depth"]})


def fusing(wildcards):
    """List the settings of a fusion whose weights are known."""
    return plain({"depth": depth(wildcards)})


def reading(wildcards):
    """List the settings of runs from files."""
    return plain({**where(wildcards), "depth": depth(wildcards)})


def run_files(wildcards):
    """List the files of a third-party system's runs."""
    runs = system_rows[wildcards.system]["runs"]
    return [runs.get(collection, {}).get(split) for collection, split in targets_of(wildcards)]


def measuring(wildcards):
    """List the collections and splits on which a system is measured, and by what."""
    targets = targets_of(wildcards)
    measured = [
        " ".join(settings.evaluation.measured(collection, split)) for collection, split in targets
    ]
    return plain({**where(wildcards), "names": [name for name, _ in targets], "measures": measured})


def facts_of(page):
    """List the contents of the report, or of an exhibit, in the order of the config."""
    return facts(settings) if page == "report" else exhibit(settings, page)


# --- what jobs ask for -----------------------------------------------------------------------------------------------

planned = Planned(settings)
waiting_for = systems.waiting(settings)
FIRST = 100_000  # more than all jobs that fit beside each other have together


def waiting(section, gpus_asked):
    """Count the trainings that wait for an entry, one for the other: the priority of its jobs.

    The longest chain decides when a run ends. Jobs that want several GPUs of this machine come before all others.
    Snakemake keeps none free for a job, so that jobs of one GPU each would let them wait for ever.
    """
    several = (
        min(gpus_asked, workflow.global_resources.get("gpu").value or 0) > 1
    )  # a cluster has a queue of its own
    return lambda wildcards: several * FIRST + waiting_for[section][wildcards[0]]


def gpus(number):
    """Ask for GPUs; for none where CDMAE_DEVICE says that there are none, which jobs of SLURM inherit."""
    return 0 if device == "cpu" else number


def memory_of(rule, gpus_asked=0):
    """Ask for megabytes by the size of the data, as `./run plan` estimates them, and for more at each further attempt."""

    def megabytes(wildcards, threads, attempt):
        return asked(
            planned, Job(rule, "/".join(wildcards), threads=threads, gpus=gpus_asked), attempt
        )

    return megabytes


def cores(most):
    """Count cores by the size of the inputs, one per 16 MB: small jobs run side by side."""

    def number(wildcards, input):
        if not all(map(os.path.exists, input)):
            return most
        paths = [Path(name) for name in input]
        files = [
            file
            for path in paths
            for file in (path.rglob("*") if path.is_dir() else [path])
            if file.is_file()
        ]
        return max(1, min(most, sum(file.stat().st_size for file in files) >> 24))

    return number


def network_cores(most, rows, key):
    """Count cores by the width of the network of the start in a column; more than one do not help narrow ones."""

    def number(wildcards):
        start = settings.starts[rows[wildcards[0]][key]]
        return most if start.checkpoint or start.hidden >= 256 else 1

    return number
