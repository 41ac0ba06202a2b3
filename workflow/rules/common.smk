# Reads and checks the config before any rule is defined, and helps the rules to fill in their paths and parameters.

import atexit
import fcntl
import json
import os
import shlex
import signal
import sys
import time
from functools import cache
from os.path import dirname
from pathlib import Path

from snakemake.common import NOTHING_TO_BE_DONE_MSG
from snakemake.exceptions import WorkflowError
from snakemake.logging import logger
from snakemake.settings.types import DeploymentMethod
from snakemake.utils import min_version

min_version("9.20")
sys.path.insert(0, str(workflow.basedir))

from cdmae import collections
from cdmae.cli import last_words
from cdmae.config import systems
from cdmae.config.places import load
from cdmae.config.systems import TRAINED
from cdmae.errors import InputError, said
from cdmae.plan.work import asked
from workflow.facts import FIGURES, TABLES, card, exhibit, facts
from workflow.fingerprint import fingerprint
from workflow.state import key_of
from workflow.surroundings import check_cache, device_here

try:
    device = device_here()
    if workflow.workflow_settings.cache:
        check_cache()
    settings = load(
        Path(workflow.basedir, "config/config.yaml"),
        workflow.configfiles,
        config,
        given=workflow.config_settings.config,
    )
except InputError as error:
    raise WorkflowError(said(error)) from None
results = settings.results.rstrip("/") or "/"

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


encoder_rows, system_rows = systems.encoders(settings), systems.systems(settings)
evaluated = list(settings.evaluation.collections)
COLLECTION_FILES = ("passages.parquet", "queries.parquet", "qrels.parquet", "about.json")
TARGETS = [f"{collection}.{split}" for collection, split in systems.targets(settings)]


def of_encoder(pattern):
    """Fill in a pattern from the columns of the wildcard's encoder; an empty column gives no path."""

    def paths(wildcards):
        return filled(pattern, encoder_rows[wildcards.encoder], wildcards)

    return paths


def of_system(pattern):
    """Fill in a pattern from the columns of the wildcard's system; an empty column gives no path.

    Without a wildcard that names the collection, there is a path for each that is evaluated.
    """

    def paths(wildcards):
        return filled(pattern, system_rows[wildcards.system], wildcards)

    return paths


def filled(pattern, row, wildcards):
    """Put the columns of a row and the wildcards into a pattern; lists give several paths."""
    columns = {"target": TARGETS, "collection": evaluated, **row, **dict(wildcards.items())}
    return expand(pattern, **{key: [] if value == "" else value for key, value in columns.items()})


def per_target(pattern):
    """Fill in a word for every (collection, split) of a job: that of its wildcards, or all that are evaluated."""

    def words(wildcards):
        about = (wildcards.collection, wildcards.split) if "split" in wildcards.keys() else None
        row = system_rows[wildcards.system] | {"system": wildcards.system}
        rows = [row | of_target(*target) for target in ([about] if about else systems.targets(settings))]
        return [workflow.pathvars.apply(pattern).format(**columns) for columns in rows]

    return words


def of_target(collection, split):
    """Tell where the texts of a target are cut (0: at a system's own lengths) and how it is measured."""
    length, measures = length_of(collection), settings.evaluation.measured(collection, split)
    return {"collection": collection, "split": split, "length": length, "measures": " ".join(measures)}


def length_of(collection):
    """Tell where systems cut the texts of a collection; 0: at their own lengths."""
    return settings.evaluation.lengths.get(collection, 0)


def gpus(number):
    """Ask for GPUs; for none where CDMAE_DEVICE says that there are none, which jobs of SLURM inherit."""
    return 0 if device == "cpu" else number


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


def folder(name):
    """Name the folder of an input that is a list of files."""

    def path(wildcards, input):
        return dirname(input[name] if isinstance(input[name], str) else input[name][0])

    return path


def option(name, flag, value=str):
    """Write an option for an input that not every job of a rule has."""

    def words(wildcards, input):
        return f"{flag} {shlex.quote(value(str(input[name])))}" if input[name] else ""

    return words


def cores(most):
    """Count cores by the size of the inputs, one per 16 MB: small jobs run side by side."""

    def value(wildcards, input):
        if not all(map(os.path.exists, input)):
            return most
        folders = [path for path in input if os.path.isdir(path)]
        inside = [os.path.join(top, name) for path in folders for top, _, names in os.walk(path) for name in names]
        size = sum(map(os.path.getsize, [*inside, *(path for path in input if path not in folders)]))
        return max(1, min(most, size >> 24))

    return value


def network_cores(most, rows, column="start"):
    """Count cores by the width of the network of the start in a column; more than one do not help narrow ones."""

    def value(wildcards):
        start = settings.starts[rows[wildcards[0]][column]]
        return most if start.checkpoint or start.hidden >= 256 else 1

    return value


# --- how it ends ----------------------------------------------------------------------------------------------------

begun = time.time()


def say_last(words):
    """Say something once Snakemake has said all that it says: what was wrong stands last, where one looks first."""
    atexit.register(print, words, file=sys.stderr)


onerror:
    for words in reversed(last_words(f"{results}/logs", begun)):
        say_last(words)


def say_where():
    """Name what there is to look at."""
    page = f"{results}/report/index.html"
    exhibits = [name for name in (*TABLES, *FIGURES) if name in sys.argv]
    for name in exhibits:
        say_last(f"{name}: {results}/tables/{name}.{'md' if name in TABLES else 'svg'}")
    if not exhibits and Path(page).exists():
        say_last(f"report: {page}")


onsuccess:
    say_where()


def nothing_to_do(record):
    """A filter of log records that drops none: where there is nothing to do, Snakemake calls no hook but says so."""
    if record.msg == NOTHING_TO_BE_DONE_MSG and not workflow.dryrun:
        say_where()
    return True


logger.addFilter(nothing_to_do)


# --- one run at a time ----------------------------------------------------------------------------------------------
# The lock is the operating system's and ends with this process; Snakemake's own (off: see the profile) outlives a kill.

locks = []


onstart:
    try:
        Path(results).mkdir(parents=True, exist_ok=True)
        locks.append(open(f"{results}/.lock", "a+"))
    except OSError as error:
        refusal = f"results is {results}, which cannot be written to: {error.strerror}"
        say_last(said(refusal))
        raise WorkflowError(said(refusal)) from None
    try:
        fcntl.flock(locks[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        locks[-1].seek(0)
        refusal = f"another run ({locks[-1].read().strip() or 'unknown'}) is working on {results}; wait for it"
        say_last(said(refusal))
        raise WorkflowError(said(refusal))
    except OSError as error:  # a network file system without locks
        print(f"{results} cannot be locked ({error.strerror}): start one run at a time", file=sys.stderr)
    locks[-1].truncate(0)
    locks[-1].write(f"process {os.getpid()} on {os.uname().nodename}")
    locks[-1].flush()
