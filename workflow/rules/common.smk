# Reads and checks the config before any rule is defined, and helps the rules to fill in their paths and parameters.

import json
import os
import shlex
import signal
import sys
from functools import cache, partial
from os.path import dirname
from pathlib import Path

from snakemake.settings.types import DeploymentMethod
from snakemake.utils import min_version

min_version("9.20")
sys.path.insert(0, str(workflow.basedir))

from cdmae.config import systems
from cdmae.config.load import gather, load
from cdmae.config.systems import TRAINED
from cdmae.errors import InputError, said
from cdmae.plan import sizes
from cdmae.plan.work import asked
from workflow.facts import FIGURES, TABLES, card, exhibit, facts, inputs
from workflow.fingerprint import fingerprint
from workflow.state import key_of
from workflow.surroundings import check_cache, check_records, device_here
from workflow.targets import check

# What is wrong ends in its sentence, whoever started Snakemake, which would put its own words around an `Exception`.
try:
    device = device_here()
    if workflow.workflow_settings.cache is not None:
        check_cache()
    default = Path(workflow.basedir, "config/config.yaml")
    settings = load(gather(default, workflow.configfiles, workflow.config_settings.config))
    if workflow.is_main_process:  # once a run, not in every job
        check_records(Path(workflow.basedir))
        for name in settings.collections:
            sizes.count(settings, name)
except InputError as error:
    raise SystemExit(said(error)) from error
results = os.path.normpath(settings.results)

# Every command runs from the checkout with this process as its parent: killed together with Snakemake, a job saves its
# state and ends (cdmae/cli.py), instead of going on beside the next run. `tee -i` outlives a Ctrl-C to log its end.
# The progress bars of other libraries are off: ours has lines.
shell.executable("bash")
shell.prefix(
    f"set -euo pipefail; export PYTHONPATH={shlex.quote(str(workflow.basedir))} CDMAE_PARENT={os.getpid()}"
    " TQDM_DISABLE=1; "
)

# SLURM warns all processes of a job before its time limit. Trainers save their state upon it
# (cdmae/training/setup.py); this process, the shell and tee would die of it and take the trainer along. What they start
# inherits that it is ignored.
signal.signal(signal.SIGUSR1, signal.SIG_IGN)


# For --sdm apptainer: the image that envs/cdmae.def makes, or another one.
if DeploymentMethod.APPTAINER in workflow.deployment_settings.deployment_method:
    image = os.environ.get("CDMAE_IMAGE", str(Path(workflow.basedir, "envs/cdmae.sif")))
    if not Path(image).exists():
        raise SystemExit(
            said(f"there is no image {image}; make it by `apptainer build {image} envs/cdmae.def`, or set CDMAE_IMAGE")
        )

    container: image


# --- paths -----------------------------------------------------------------------------------------------------------
# A pattern shows where something lies. What depends on an entry of the config is filled in from a row of these tables.


pathvars:
    results=results,
    logs="<results>/logs",
    benchmarks="<results>/benchmarks",


collection_rows = {
    name: {
        "files": list(map(str, entry.settings.depends())),
        "version": entry.settings.version(),
        "threads": entry.settings.threads(),
        "length": settings.evaluation.lengths.get(name, 0),  # where systems cut its texts; 0: at their own lengths
    }
    for name, entry in settings.collections.items()
}
start_rows = {
    name: {"vocabulary": start.collection, "checkpoint": systems.model_files(start.checkpoint)}
    for name, start in settings.starts.items()
}
encoder_rows, system_rows = systems.encoders(settings), systems.systems(settings)
evaluated = list(dict.fromkeys(name for name, _ in systems.targets(settings)))
TARGETS = [f"{collection}.{split}" for collection, split in systems.targets(settings)]
COLLECTION_FILES = ("passages.parquet", "queries.parquet", "qrels.parquet", "about.json")
KEPT = settings.evaluation.keep_vectors


def per_job(function):
    """Divide a call: rules give the first arguments, and Snakemake those of a job (its wildcards, input, output)."""
    return partial(partial, function)


@per_job
def of(rows, pattern, wildcards):
    """Fill in a pattern from the first wildcard's row; an empty column gives no path.

    Lists give several paths. Without a wildcard that names the collection, there is a path for each that is evaluated.
    """
    columns = {"target": TARGETS, "collection": evaluated, **rows[wildcards[0]], **dict(wildcards.items())}
    return expand(pattern, **{key: [] if value == "" else value for key, value in columns.items()})


of_collection, of_start, of_encoder, of_system = (
    partial(of, rows) for rows in (collection_rows, start_rows, encoder_rows, system_rows)
)


@per_job
def per_target(key, wildcards):
    """List a column of every (collection, split) of a job: that of its wildcards, or all that are evaluated.

    collection, folder: its name and where it lies; split; length: where its texts are cut; measures: how it is measured; run:
    somebody's file.
    """
    own = [(wildcards.collection, wildcards.split)] if "split" in wildcards.keys() else systems.targets(settings)
    return [
        {
            "collection": collection,
            "folder": f"{results}/collections/{collection}",
            "split": split,
            "length": str(collection_rows[collection]["length"]),
            "measures": " ".join(settings.evaluation.measured(collection, split)),
            "run": settings.systems[wildcards.system].runs.get(collection, {}).get(split),
        }[key]
        for collection, split in own
    ]


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
# A parameter is a reason to run again, unless it is a function of `input` or `output`.


@per_job
def setting(rows, key, wildcards):
    """Take one setting of the first wildcard's entry, with its key."""
    row = rows[wildcards[0]]
    known = key if key in row else next(iter(row))
    return f"{known}: {row[known]}"


def settings_of(rows):
    """List the settings of the first wildcard's entry, a parameter a key: the reason to run again names the key.

    An entry that lacks the key of another one repeats its first: Snakemake compares sets. So numbers need their keys,
    or one that takes the value of another would pass unseen.
    """
    return [setting(rows, key) for key in sorted({key for row in rows.values() for key in row})]


@per_job
def text_of(rows, wildcards, output):
    """Write the settings of the first wildcard's entry as JSON for the command line; no reason to run again."""
    return json.dumps(rows[wildcards[0]], sort_keys=True)


@per_job
def column(rows, key, wildcards):
    """Take one column of the first wildcard's entry."""
    return rows[wildcards[0]][key]


def depth(wildcards):
    """Count the passages that a run keeps of each query: over training queries as many as a training asks for."""
    if "split" not in wildcards.keys():
        return settings.evaluation.depth
    return systems.mined(settings)[wildcards.system, wildcards.collection, wildcards.split]


def length(wildcards):
    """Tell where the passages of a collection are cut; 0: at a system's own length, which a foreign one may name."""
    own = system_rows[wildcards.system].get("passage_length", 0)
    return collection_rows[wildcards.collection]["length"] or own


def triples(wildcards):
    """Describe the published triples in the place of mining: their name and the settings of their collection."""
    name = system_rows[wildcards.system]["triples"] if "split" in wildcards.keys() else ""
    return json.dumps({"name": name, **collection_settings[wildcards.collection]} if name else {}, sort_keys=True)


def example(wildcards):
    """Tell the text that is shaded; Snakemake would fill in braces of a plain one."""
    return settings.report.example


def facts_of(wildcards):
    """List what the report is made from, or the wildcard's exhibit."""
    return exhibit(settings, wildcards.exhibit) if "exhibit" in wildcards.keys() else facts(settings)


def facts_inputs(wildcards):
    """Name the files and folders among them."""
    return inputs(facts_of(wildcards))


def facts_text(wildcards):
    """Write them as JSON, in the order of the config: the reason to make the report or exhibit again."""
    return json.dumps(facts_of(wildcards))


def facts_file(wildcards, output):
    """Name the file from which the job reads them: a run writes it as it starts, since no command line is so long."""
    return f"{results}/.facts/{wildcards.get('exhibit', 'report')}.json"


@cache
def code(rule, *modules):
    """List the modules behind a script with their fingerprints, a parameter each: the reason to run again names them.

    modules: others that the settings name and no import shows.
    """
    known = fingerprint(f"workflow/scripts/{rule}.py", modules)
    return [f"{module} {known[module]}" for module in known]


@per_job
def plugins(rule, modules, wildcards):
    """List what `code` adds for the modules that the settings of the first wildcard's entry name."""
    return [line for line in code(rule, *modules[wildcards[0]]) if line not in code(rule)]


@per_job
def state(rule, tables, modules, wildcards, output):
    """Tell where a training keeps what it resumes from, and hash its settings and code (workflow/state.py)."""
    name = wildcards[0]
    facts = [code(rule, *modules.get(name, [])), *(rows[name] for rows in tables)]
    return [f"{results}/state/{rule}/{name}", key_of(facts)]


@per_job
def folder(name, wildcards, input):
    """Name the folder of an input that is a file or a list of files; nothing where there is none."""
    return dirname(input[name] if isinstance(input[name], str) else next(iter(input[name]), ""))


# --- what jobs ask for -----------------------------------------------------------------------------------------------

waiting_for = systems.waiting(settings)
FIRST = 100_000  # more than all jobs that fit beside each other have together


@per_job
def waiting(section, gpus_asked, wildcards):
    """Count the trainings that wait for an entry, one for the other: the priority of its jobs.

    The longest chain decides when a run ends. Jobs that want several GPUs of this machine come before all others.
    Snakemake keeps none free for a job, so that jobs of one GPU each would let them wait for ever.
    """
    several = min(gpus_asked, workflow.global_resources.get("gpu").value or 0) > 1  # a cluster has a queue of its own
    return several * FIRST + waiting_for[section][wildcards[0]]


def gpus(number):
    """Ask for GPUs; for none where CDMAE_DEVICE says that there are none, which jobs of SLURM inherit."""
    return 0 if device == "cpu" else number


@per_job
def memory_of(rule, wildcards):
    """Ask for megabytes by the size of the collection, as `./run plan` estimates them."""
    return asked(settings, rule, *wildcards)


@per_job
def cores(most, wildcards, input):
    """Count cores by the size of the inputs, one per 16 MB: small jobs run side by side."""
    if not all(map(os.path.exists, input)):
        return most
    paths = [Path(name) for name in input]
    files = [file for path in paths for file in (path.rglob("*") if path.is_dir() else [path]) if file.is_file()]
    return max(1, min(most, sum(file.stat().st_size for file in files) >> 24))


@per_job
def network_cores(most, rows, key, wildcards):
    """Count cores by the width of the network of the start in a column; more than one do not help narrow ones."""
    start = settings.starts[rows[wildcards[0]][key]]
    return most if start.checkpoint or start.hidden >= 256 else 1
