# Reads and checks the config before any rule is defined, and helps the rules to fill in their paths and parameters.

import json
import os
import shlex
import signal
import sys
from functools import cache
from os.path import dirname
from pathlib import Path

from snakemake.exceptions import WorkflowError
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
from workflow.surroundings import check_cache, device_here

try:
    device = device_here()
    if workflow.workflow_settings.cache:
        check_cache()
    default = Path(workflow.basedir, "config/config.yaml")
    settings = load(gather(default, workflow.configfiles, workflow.config_settings.config))
    if workflow.is_main_process:  # once a run, not in every job
        for name in settings.collections:
            sizes.count(settings, name)
except InputError as error:
    raise WorkflowError(said(error)) from None
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


# The environment of every job, for --sdm conda.
environment = str(Path(workflow.basedir, f"envs/{device or 'cpu'}.yaml"))


# And for --sdm apptainer: the image that envs/cdmae.def makes, or another one.
if DeploymentMethod.APPTAINER in workflow.deployment_settings.deployment_method:
    image = os.environ.get("CDMAE_IMAGE", str(Path(workflow.basedir, "envs/cdmae.sif")))
    if not Path(image).exists():
        raise WorkflowError(
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


def of(rows):
    """Make a function that fills in a pattern from the first wildcard's row; an empty column gives no path.

    Lists give several paths. Without a wildcard that names the collection, there is a path for each that is evaluated.
    """

    def filler(pattern):
        def paths(wildcards):
            known = {"target": TARGETS, "collection": evaluated}
            columns = {**known, **rows[wildcards[0]], **dict(wildcards.items())}
            return expand(pattern, **{key: [] if value == "" else value for key, value in columns.items()})

        return paths

    return filler


of_collection, of_start, of_encoder, of_system = map(of, (collection_rows, start_rows, encoder_rows, system_rows))


def per_target(column):
    """List a column of every (collection, split) of a job: that of its wildcards, or all that are evaluated.

    collection, folder: its name and where it lies; split; length: where its texts are cut; measures: how it is measured; run:
    somebody's file.
    """

    def values(wildcards):
        own = [(wildcards.collection, wildcards.split)] if "split" in wildcards.keys() else systems.targets(settings)
        return [
            {
                "collection": collection,
                "folder": f"{results}/collections/{collection}",
                "split": split,
                "length": str(collection_rows[collection]["length"]),
                "measures": " ".join(settings.evaluation.measured(collection, split)),
                "run": settings.systems[wildcards.system].runs.get(collection, {}).get(split),
            }[column]
            for collection, split in own
        ]

    return values


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


def settings_of(rows):
    """List the settings of the first wildcard's entry, a parameter a key: the reason to run again names the key.

    An entry that lacks the key of another one repeats its first: Snakemake compares sets. So numbers need their keys,
    or one that takes the value of another would pass unseen.
    """

    def setting(key):
        def shown(wildcards):
            row = rows[wildcards[0]]
            known = key if key in row else next(iter(row))
            return f"{known}: {row[known]}"

        return shown

    return [setting(key) for key in sorted({key for row in rows.values() for key in row})]


def text_of(rows):
    """Write the settings of the first wildcard's entry as JSON for the command line; no reason to run again."""

    def text(wildcards, output):
        return json.dumps(rows[wildcards[0]], sort_keys=True)

    return text


def column(rows, key):
    """Take one column of the first wildcard's entry."""

    def value(wildcards):
        return rows[wildcards[0]][key]

    return value


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
    """Write them as JSON: the reason to make the report or exhibit again."""
    return json.dumps(facts_of(wildcards), sort_keys=True)


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


def plugins(rule, modules):
    """List what `code` adds for the modules that the settings of the first wildcard's entry name."""

    def lines(wildcards):
        return [line for line in code(rule, *modules[wildcards[0]]) if line not in code(rule)]

    return lines


def state(rule, *tables, modules=None):
    """Tell where a training keeps what it resumes from, and hash its settings and code (workflow/state.py)."""

    def words(wildcards, output):
        named = modules[wildcards[0]] if modules else []
        facts = [code(rule, *named), *(rows[wildcards[0]] for rows in tables)]
        return [f"{results}/state/{rule}/{wildcards[0]}", key_of(facts)]

    return words


def folder(name):
    """Name the folder of an input that is a file or a list of files; nothing where there is none."""

    def path(wildcards, input):
        return dirname(input[name] if isinstance(input[name], str) else next(iter(input[name]), ""))

    return path


# --- what jobs ask for -----------------------------------------------------------------------------------------------

waiting_for = systems.waiting(settings)
FIRST = 100_000  # more than all jobs that fit beside each other have together


def waiting(section, gpus_asked=0):
    """Count the trainings that wait for an entry, one for the other: the priority of its jobs.

    The longest chain decides when a run ends. Jobs that want several GPUs of this machine come before all others.
    Snakemake keeps none free for a job, so that jobs of one GPU each would let them wait for ever.
    """
    several = min(gpus_asked, workflow.global_resources.get("gpu").value or 0) > 1  # a cluster has a queue of its own

    def priority(wildcards):
        return several * FIRST + waiting_for[section][wildcards[0]]

    return priority


def gpus(number):
    """Ask for GPUs; for none where CDMAE_DEVICE says that there are none, which jobs of SLURM inherit."""
    return 0 if device == "cpu" else number


def memory_of(rule):
    """Ask for megabytes by the size of the collection, as `./run plan` estimates them."""

    def megabytes(wildcards):
        return asked(settings, rule, *wildcards)

    return megabytes


def cores(most):
    """Count cores by the size of the inputs, one per 16 MB: small jobs run side by side."""

    def value(wildcards, input):
        if not all(map(os.path.exists, input)):
            return most
        paths = [Path(name) for name in input]
        files = [file for path in paths for file in (path.rglob("*") if path.is_dir() else [path]) if file.is_file()]
        return max(1, min(most, sum(file.stat().st_size for file in files) >> 24))

    return value


def network_cores(most, rows, column="start"):
    """Count cores by the width of the network of the start in a column; more than one do not help narrow ones."""

    def value(wildcards):
        start = settings.starts[rows[wildcards[0]][column]]
        return most if start.checkpoint or start.hidden >= 256 else 1

    return value
