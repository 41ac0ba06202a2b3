# Reads and checks the config before any rule is defined, and offers the rules what they ask the graph for.

import atexit
import fcntl
import json
import os
import shlex
import signal
import sys
import time
from os.path import dirname
from pathlib import Path

from snakemake.common import NOTHING_TO_BE_DONE_MSG
from snakemake.exceptions import WorkflowError
from snakemake.logging import logger
from snakemake.settings.types import DeploymentMethod
from snakemake.utils import min_version

min_version("9.20")
sys.path.insert(0, str(workflow.basedir))

from cdmae import surroundings
from cdmae.cli import last_words
from cdmae.config.schema import Encoder, Importance, Stage, Start
from cdmae.errors import InputError, said
from cdmae.fingerprint import fingerprint
from cdmae.graph import TRAINED, Graph
from cdmae.jobs import FIGURES, TABLES
from cdmae.training.lineage import Lineage, script
from cdmae.config.places import load
from cdmae.plan.work import asked
from cdmae.fields import later

try:
    device = surroundings.device()
    if workflow.workflow_settings.cache:
        surroundings.check_cache()
    settings = load(
        Path(workflow.basedir, "config/config.yaml"),
        workflow.configfiles,
        config,
        given=workflow.config_settings.config,
    )
    graph = Graph(settings)
    lineage = Lineage(graph)
except InputError as error:
    raise WorkflowError(said(error)) from None

# Every command runs from the checkout with this process as its parent: killed together with Snakemake, a job saves its
# state and ends (cdmae/cli.py), instead of going on beside the next run. `tee -i` outlives a Ctrl-C to log its end.
# The progress bars of other libraries are off: ours has lines.
shell.executable("bash")
shell.prefix(
    f"set -euo pipefail; export PYTHONPATH={shlex.quote(str(workflow.basedir))} CDMAE_PARENT={os.getpid()} TQDM_DISABLE=1; "
)

# SLURM warns all processes of a job before its time limit. Trainers save their state upon it (cdmae/training/setup.py); this
# process, the shell and tee would die of it and take the trainer along. What they start inherits that it is ignored.
signal.signal(signal.SIGUSR1, signal.SIG_IGN)


# The environment of every job, for --sdm conda.
environment = str(Path(workflow.basedir, f"envs/{device or 'cpu'}.yaml"))


def gpus(number):
    """What a rule asks for; none where CDMAE_DEVICE says that there are none, which jobs of SLURM inherit."""
    return 0 if device == "cpu" else number


# And for --sdm apptainer: the image that envs/cdmae.def makes, or another one.
if DeploymentMethod.APPTAINER in workflow.deployment_settings.deployment_method:
    image = os.environ.get("CDMAE_IMAGE", str(Path(workflow.basedir, "envs/cdmae.sif")))
    if not Path(image).exists():
        raise WorkflowError(
            said(f"there is no image {image}; make it by `apptainer build {image} envs/cdmae.def`, or set CDMAE_IMAGE")
        )

    container: image


# --- what jobs ask for ----------------------------------------------------------------------------------------------
# Its wildcards are, in order, the names by which the graph knows its job.


def inputs(name):
    """The inputs of a job by their names, for unpack()."""
    return lambda wildcards: graph.job(name, *wildcards).inputs


def setting(name, key):
    """What a job's result depends on besides its inputs: a plain value, or a mapping as JSON text."""
    return lambda wildcards: plain(graph.job(name, *wildcards).params[key])


def entry(name, schema, key="settings"):
    """The same for an entry of the config, one parameter for every key: the reason to run again shows which changed.

    A setting that came later and is unused repeats the first one: Snakemake compares sets, and what was made without it
    stays.
    """
    first, new = next(iter(schema.__dataclass_fields__)), later(schema)

    def value(field):
        def told(wildcards):
            found = graph.job(name, *wildcards).params[key]
            shown = field if field in found or field not in new else first
            return f"{shown}: {found.get(shown)}"

        return told

    return [value(each) for each in schema.__dataclass_fields__]


def entry_text(name, key="settings"):
    """An entry of the config for the command line. (A function of `input` or `output` is no reason to run again.)"""
    return lambda wildcards, output: plain(graph.job(name, *wildcards).params[key])


def plain(value):
    """A value as a parameter."""
    return json.dumps(value, sort_keys=True) if isinstance(value, dict) else value


def code(name):
    """The modules behind a job with their fingerprints, one parameter each: the reason to run again names them."""
    return [f"{module} {found}" for module, found in fingerprint(script(name)).items()]


def plugins(name):
    """The same for modules that the settings name and no import shows."""

    def value(wildcards):
        named = fingerprint(script(name), graph.job(name, *wildcards).plugins)
        known = code(name)
        return [line for line in (f"{module} {found}" for module, found in named.items()) if line not in known]

    return value


FIRST = 1000  # more than all jobs that fit beside each other have together


def waiting(name, wanted=0):
    """The priority of a job: how long a chain of jobs waits for it. The longest chain decides when a run ends.

    Those that want several GPUs of this machine come before all others. Snakemake keeps none free for a job, so that
    jobs of one GPU each, one after the other, would let them wait for ever.
    """
    several = min(wanted, workflow.global_resources.get("gpu").value or 0) > 1  # a cluster has a queue of its own
    return lambda wildcards: several * FIRST + graph.waiting.get((name, "/".join(wildcards)), 0)


def folder(name):
    """The folder of an input that is given by its files."""
    return lambda wildcards, input: dirname(input[name] if isinstance(input[name], str) else input[name][0])


def targets(path):
    """A path for every (collection, split) that is evaluated, after the rule's wildcards."""
    return lambda wildcards, output: [path(*wildcards, collection) for collection, _ in graph.targets()]


def over(system, collections):
    """What a system searches, as an option: vectors, or what they are made from while they are searched."""
    if settings.evaluation.keep_vectors:
        return ["--vectors", *(graph.vectors(system, each) for each in collections)]
    if settings.systems[system].kind == "external":
        return []  # it reads the collections themselves
    return ["--tokens", *(graph.tokens(graph.start_of(system), each) for each in collections)]


def state(name):
    """Where a training keeps what it resumes from."""
    return lambda wildcards, output: lineage.state(graph.job(name, *wildcards))


def option(name, flag, value=str):
    """An option for an input that not every job of a rule has."""
    return lambda wildcards, input: f"{flag} {value(input[name])}" if name in input.keys() else ""


def cores(most):
    """Cores by the size of the inputs, one per 16 MB: small jobs run side by side, not one after the other."""

    def value(wildcards, input):
        if not all(map(os.path.exists, input)):
            return most
        folders = [path for path in input if os.path.isdir(path)]
        inside = [os.path.join(top, name) for path in folders for top, _, names in os.walk(path) for name in names]
        size = sum(map(os.path.getsize, [*inside, *(path for path in input if path not in folders)]))
        return max(1, min(most, size >> 24))

    return value


def memory(name):
    """Megabytes by the size of the collection, as `./run plan` estimates them."""
    return lambda wildcards: asked(graph, graph.job(name, *wildcards))


def network_cores(most, start):
    """Cores by the width of a network; `start` tells from a wildcard where it starts. More do not help narrow ones."""

    def value(wildcards):
        found = settings.starts[start(wildcards[0])]
        return most if found.checkpoint or found.hidden >= 256 else 1

    return value


def only(names):
    """A wildcard constraint: one of these names, and nothing where there is none."""
    return "|".join(sorted(names)) or "(?!)"


wildcard_constraints:
    collection=only(settings.collections),
    start=only(settings.starts),
    importance=only(settings.importance),
    encoder=only(settings.encoders),
    system=only(settings.systems),
    split=only({split for *_, split in graph.mined()}),


# --- how it ends ----------------------------------------------------------------------------------------------------

begun = time.time()


def say_last(words):
    """Say something once Snakemake has said all that it says: what was wrong stands last, where one looks first."""
    atexit.register(print, words, file=sys.stderr)


onerror:
    for words in reversed(last_words(graph.path("logs"), begun)):
        say_last(words)


def say_where():
    """Name what there is to look at."""
    exhibits = [each for each in (*TABLES, *FIGURES) if each in sys.argv]
    for each in exhibits:
        say_last(f"{each}: {graph.exhibits()}/{each}.{'md' if each in TABLES else 'svg'}")
    if not exhibits and Path(graph.page()).exists():
        say_last(f"report: {graph.page()}")


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

held = []


onstart:
    try:
        Path(settings.results).mkdir(parents=True, exist_ok=True)
        held.append(open(graph.path(".lock"), "a+"))
    except OSError as error:
        refusal = f"results is {settings.results}, which cannot be written to: {error.strerror}"
        say_last(said(refusal))
        raise WorkflowError(said(refusal)) from None
    try:
        fcntl.flock(held[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        held[-1].seek(0)
        refusal = (
            f"another run ({held[-1].read().strip() or 'unknown'}) is working on {settings.results}; wait for it"
        )
        say_last(said(refusal))
        raise WorkflowError(said(refusal))
    except OSError as error:  # a network file system without locks
        print(f"{settings.results} cannot be locked ({error.strerror}): start one run at a time", file=sys.stderr)
    held[-1].truncate(0)
    held[-1].write(f"process {os.getpid()} on {os.uname().nodename}")
    held[-1].flush()
