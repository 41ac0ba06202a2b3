# Reads and checks the config, and helps the rules to fill in their paths and parameters.
#
# Key
#   <results>         the folder of this run; <logs> is below it
#   {system}          a wildcard: its value comes from the requested path
#   {part}            of a system's runs: `evaluated`, over all evaluated queries, or
#                     COLLECTION.SPLIT, over queries on which a stage trains
#   {system.encoder}  a column: the encoder of the config's system; `of` fills it in. A list gives
#                     several paths, an empty column gives none. Columns are `tables` below: a
#                     system has its settings and the values of its method `columns` in
#                     cdmae/config/kinds.py, other entries have those of cdmae/config/systems.py
#   params.call       the function that scripts/call.py calls; a script that joins several parts of
#                     the library has a function of its own, `main`
#   params.settings   the settings that a result depends on, as plain values: by name, arguments of
#                     the script's function, one of which may be called `settings`, too. A script
#                     passes over those without a parameter, which are only reasons to run again.
#                     With the setting `targets`, pairs of a collection and a split, the inputs
#                     `collections` and `runs` become the arguments `folders` and `targets`
#   params.code       hashes of the modules, classes of settings and templates that a result depends
#                     on; a bare word is a script in workflow/scripts
#   params.contents   hashes of the user's files that a result depends on. Snakemake records all
#                     four, and runs a job again if one of them has changed
#   other params      functions with an argument `input` or `output`, even an unused one: Snakemake
#                     does not record them, so their changes do not run a job again
#
# Every script passes its rule's object `snakemake` to cdmae.job.run, which fills the parameters of
# one function.

import os
import re
import shutil
import signal
import sys
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from snakemake.exceptions import WorkflowError
from snakemake.logging import logger
from snakemake.utils import min_version

min_version("9.20")

root = Path(str(workflow.current_basedir)).parents[1]
if str(root) not in sys.path:
    sys.path.insert(0, str(root))

from cdmae.circumstances import STARTED, now
from cdmae.collections import CHOICES
from cdmae.config import seeds, systems
from cdmae.config.load import load
from cdmae.config.reading import gather, lay, read_yaml
from cdmae.errors import InputError, said
from cdmae.fields import pick
from cdmae.report import sources
from workflow import fingerprint, hooks

imported = not workflow.modifier.is_main_snakefile()  # by another workflow, as a module


def read_config():
    """Read the config from its files, or from the workflow that imports this one as a module."""
    default = root / "config/config.yaml"
    if imported:
        return lay({} if config.get("standalone") else read_yaml(default), config)
    return gather(default, workflow.configfiles, workflow.config_settings.config)


@contextmanager
def in_a_sentence():
    """End the process with the message of an `InputError`, and nothing else.

    Snakemake would add text to the message of an `Exception`.
    """
    try:
        yield
    except InputError as error:
        raise SystemExit(said(error)) from error


with in_a_sentence():
    settings = load(read_config())


pathvars:
    results=os.path.normpath(settings.results),
    logs="<results>/logs",


# the results below the prefix of a module
results = workflow.pathvars.apply(workflow.modifier.path_modifier.replace_prefix("<results>"))
settings = replace(settings, results=results)

# For --sdm conda: jobs have one environment, for GPUs if this machine has NVIDIA's driver. Jobs on
# other machines inherit the choice.
device = os.environ.setdefault("CDMAE_DEVICE", "gpu" if shutil.which("nvidia-smi") else "")
environment = f"../../envs/{device or 'cpu'}.yaml"


container: os.environ.get("CDMAE_IMAGE", str(root / "envs/cdmae.sif"))


# Jobs import this checkout. They end, and save the states of trainings, when this process ends, or
# on SLURM Snakemake's process in the job. Their libraries print no progress bars, and report no
# model's name to a service.
os.environ |= {
    "PYTHONPATH": str(root),
    "CDMAE_PARENT": str(os.getpid()),
    "TQDM_DISABLE": "1",
    "DISABLE_SAFETENSORS_CONVERSION": "1",
    "HF_HUB_DISABLE_TELEMETRY": "1",
}
if workflow.is_main_process:  # once a run, not in every job
    os.environ[STARTED] = now()

# SLURM warns all processes of a job before its time limit. Trainers then save their state
# (cdmae/training/setup.py). All other processes must ignore the signal, or they would end, and the
# trainer with them. Child processes inherit that a signal is ignored.
signal.signal(signal.SIGUSR1, signal.SIG_IGN)


# --- paths ----------------------------------------------------------------------------------------

EVALUATED = systems.targets(settings)
MINED = systems.mined(settings)  # depths of runs over training queries: (system, collection, split)
FILES = ("passages.parquet", "queries.parquet", "qrels.parquet", "about.json")  # of a collection

with in_a_sentence():  # files that do not exist
    tables = {
        "collection": systems.collections(settings),
        "start": systems.starts(settings),
        "encoder": systems.encoders(settings),
        "system": systems.systems(settings),
    }
COLUMN = re.compile(r"{(\w+)\.(\w+)}")


def of(pattern):
    """Fill in the columns of a pattern, and {file} with the files of a collection.

    An unknown column is a KeyError, which Snakemake reports with the rule's name.
    """

    def paths(wildcards):
        columns = {}
        for table, column in COLUMN.findall(pattern):
            columns[f"{table}_{column}"] = tables[table][wildcards[table]][column] or []
        known = {"file": FILES} | columns | dict(wildcards.items())
        return expand(COLUMN.sub(r"{\1_\2}", pattern), **known)

    return paths


def files_of(pattern):
    """Fill in the columns of a pattern with the user's files, to which modules add no prefix.

    Their times do not count; `contents_of` is a reason to run again. Snakemake would read braces in
    their names as wildcards; of such files, `contents_of` alone is the reason.
    """
    return lambda wildcards: [
        ancient(local(path)) for path in of(pattern)(wildcards) if not {*"{}"} & {*path}
    ]


def contents_of(*patterns):
    """Return a function that maps the user's files in some patterns to hashes of their content."""
    return lambda wildcards: fingerprint.contents(
        path for pattern in patterns for path in of(pattern)(wildcards)
    )


def targets_of(wildcards):
    """List the targets of a {part}: one, or all that are evaluated."""
    part = wildcards.get("part", "evaluated")
    return EVALUATED if part == "evaluated" else [tuple(part.split(".", 1))]


def collections_of(wildcards):
    """List the collections of a {part}, and those that only users search."""
    if wildcards.get("part", "evaluated") == "evaluated":
        return list(settings.evaluation.collections)
    return [collection for collection, _ in targets_of(wildcards)]


def on_targets(pattern):
    """Fill in each collection of the targets of a {part}, and the columns of a pattern."""
    return on_collections(pattern, lambda wildcards: dict(targets_of(wildcards)))


def on_collections(pattern, names=collections_of):
    """Fill in each collection of a {part}, the one that has its passages, and the columns."""

    def paths(wildcards):
        found = []
        for name in names(wildcards):
            filled = pattern.replace("{collection}", name).replace(
                "{passages}", settings.owner(name)
            )
            found += of(filled)(wildcards)
        return found

    return paths


def of_target(wildcards):
    """List the files of the collection of a {target}, such as pydocs.test."""
    collection = wildcards.target.split(".", 1)[0]
    return expand("<results>/collections/{collection}/{file}", collection=collection, file=FILES)


def indexed_collections(wildcards):
    """List the files of the collections whose passages BM25 indexes, perhaps with more texts."""
    system = settings.systems[wildcards.system]
    names = [system.indexed(collection) for collection in collections_of(wildcards)]
    return expand("<results>/collections/{collection}/passages.parquet", collection=names)


def of_mining(pattern):
    """Fill in the parts that a stage trains on, for a system's evaluation on their collections.

    The evaluation links the indexes or vectors of these parts instead of making them again.
    """

    def paths(wildcards):
        if wildcards.part != "evaluated" or not systems.keeps_vectors(settings, wildcards.system):
            return []
        parts = {}
        for name, collection, split in MINED:
            if name == wildcards.system:
                parts.setdefault(collection, f"{collection}.{split}")
        return expand(pattern, part=parts.values(), allow_missing=True)

    return paths


def only(names):
    """Return a pattern that matches some names, or nothing if there are no names."""
    return "|".join(sorted(names)) or "(?!)"


wildcard_constraints:
    collection=only(settings.collections),
    start=only(settings.starts),
    importance=only(settings.importance),
    encoder=only(settings.encoders),
    system=only(settings.systems),
    part=only(["evaluated", *{".".join(on) for _, *on in MINED}]),


# --- reasons to run a job again -------------------------------------------------------------------


def code(*executed, assets=()):
    """Return a function that maps what a job executes to hashes.

    executed: modules, scripts, and functions of the wildcards that list further modules, which
    settings name, and the classes of settings that the job executes. assets: the templates and
    tables that it reads, or their folders.
    """
    others = fingerprint.assets(assets)

    def hashes(wildcards):
        named = []
        for each in executed:
            named += each(wildcards) if callable(each) else [each]
        return fingerprint.executed(*named) | others

    return hashes


# --- requests -------------------------------------------------------------------------------------


def is_wide(wildcards):
    """Return whether several cores or a GPU speed up the network of a system, or of an encoder."""
    if "encoder" in wildcards.keys():
        start = settings.encoders[wildcards["encoder"]].start
    else:
        network = tables["system"][wildcards["system"]]["network"]
        start = systems.start_of(settings, network) if network else ""
    width = settings.starts[start].known_width() if start else None
    return width is None or width >= 256


def gpus(most):
    """Request up to `most` GPUs for a wide network; the profile grants at most those that exist."""
    return lambda wildcards: most if device != "cpu" and is_wide(wildcards) else 0


def gpus_of_training(wildcards):
    """Request the paper's node of 8 GPUs, but not more GPUs than a step has texts."""
    if "encoder" in wildcards.keys():
        encoder = settings.encoders[wildcards.encoder]
        per_step = encoder.batch if encoder.pretrained else 0
    else:
        per_step = stage_of(wildcards).queries
    return gpus(min(8, per_step))(wildcards)


def megabytes(paths):
    """Return the size of inputs. Snakemake's `input.size_mb` does not count the files of folders."""
    sizes = []
    for path in map(Path, paths):
        files = path.rglob("*") if path.is_dir() else [path]
        # without the file, Snakemake catches the error and evaluates the request later
        sizes += [file.stat().st_size for file in files]
    return sum(sizes) / 1e6


def memory(least, times, *, is_training=False):
    """Request some times the size of the input, but at least `least` MB, and more after a failure.

    A training's requests grow once only. Snakemake also counts an attempt that ended at its time
    limit; after several of them, the request would be more than a node has.
    """

    def request(wildcards, input, attempt):
        size = max(least, round(times * megabytes(input)))
        return size * (min(attempt, 2) if is_training else attempt)

    return request


def gpus_of_encoding(wildcards, input):
    """Request up to 8 GPUs, one per gigabyte of input: about what one encodes in an hour."""
    return gpus(min(8, 1 + int(megabytes(input)) // 1000))(wildcards)


def cores(wildcards, input):
    """Request one of up to 16 cores per 16 MB of input: small jobs run side by side."""
    if not all(map(os.path.exists, input)):  # yet
        return 16
    return max(1, min(16, int(megabytes(input)) // 16))


def network_cores(wildcards):
    """Request up to 8 cores for a wide network, and one for a narrow network."""
    return 8 if is_wide(wildcards) else 1


# --- settings of jobs -----------------------------------------------------------------------------


def modules_of_source(wildcards):
    """List the modules of a collection's source, and of the sources that it is made from."""
    collection = settings.collections[wildcards.collection]
    return [f"cdmae.collections.sources.{collection.source}", *collection.settings.modules()]


def collecting(wildcards, without=()):
    """Return the settings of a collection, and the versions of what it is made from.

    without: keys to leave out, also of a collection from which it is made.
    """
    collection = settings.collections[wildcards.collection]

    def kept(values):
        if not isinstance(values, dict):
            return values
        return {key: kept(value) for key, value in values.items() if key not in without}

    return {"settings": kept(collection.of_source()), "version": collection.settings.version()}


def pretraining(wildcards):
    """Return the settings of an encoder and of its initial weights."""
    encoder = settings.encoders[wildcards.encoder]
    return {
        "name": wildcards.encoder,
        "settings": encoder.values(),
        "start": settings.starts[encoder.start].values(),
        "seed": encoder.seed,
    }


def strategies(wildcards):
    """List the modules of an encoder's masks."""
    maskings = dict.fromkeys(settings.encoders[wildcards.encoder].maskings)
    return [f"cdmae.masking.strategies.{name}" for name in maskings]


def modules_of(wildcards):
    """List the modules that the settings of an encoder name, and their classes."""
    encoder = settings.encoders[wildcards.encoder]
    objective = [f"cdmae.pretraining.objectives.{encoder.objective}"] if encoder.pretrained else []
    kinds = [type(encoder), type(settings.starts[encoder.start])]
    return [*objective, *strategies(wildcards), *kinds]


def stage_of(wildcards):
    """Return the stage that trains a system."""
    return settings.stages[settings.systems[wildcards.system].stage]


def training(wildcards):
    """Return the settings of a system's stage that its losses use."""
    system = settings.systems[wildcards.system]
    recipe = stage_of(wildcards).values(is_taught=system.is_taught)
    return {"name": wildcards.system, "settings": recipe, "seed": recipe["seed"]}


def trainer_of(wildcards):
    """List the module that trains a system, and the class of its settings."""
    return [
        f"cdmae.finetuning.{settings.systems[wildcards.system].kind}",
        type(stage_of(wildcards)),
    ]


def teacher_of(wildcards):
    """Return the wildcards of a system's teacher, whose size decides the teacher's requests."""
    return {"system": settings.systems[wildcards.system].teacher}


def chosen(wildcards, *keys):
    """Return some settings of the system that a wildcard names, as far as it has them."""
    return pick(tables["system"][wildcards.system], keys)


def module_of(wildcards):
    """List the module that encodes the texts of a system."""
    return [f"cdmae.retrieval.{settings.systems[wildcards.system].encoded_by}"]


def searching(wildcards, **more):
    """Return the settings of every search: its targets, and the depth of the runs.

    Stages decide the depth of runs over their training queries.
    """
    depth = settings.evaluation.depth
    if wildcards.part != "evaluated":
        on = (wildcards.system, *targets_of(wildcards)[0])
        if on not in MINED:
            raise WorkflowError(f"no stage trains on {wildcards.part} by {wildcards.system}")
        depth = MINED[on]
    return {"targets": targets_of(wildcards), "depth": depth, **more}


def languages(wildcards):
    """Return the language of each searched collection's passages, by which BM25 analyses them."""
    names = collections_of(wildcards)
    return {name: settings.collections[settings.owner(name)].language for name in names}


def searching_vectors(wildcards):
    """Add the encoder and its lengths, the number of candidates, and the kind of index."""
    of_texts = ("query_length", "passage_length", "query_prompt", "passage_prompt")
    more = chosen(wildcards, "candidates_depth", "engine", "k1", "b")
    if wildcards.part == "evaluated":
        more["keep"] = systems.keeps_vectors(settings, wildcards.system)
    more["encoder"] = chosen(wildcards, "encoded_by", "model", "head", *of_texts, "uses")
    more["lengths"] = pick(settings.evaluation.lengths, collections_of(wildcards))
    return searching(wildcards, **more)


def run_files(wildcards):
    """List the files of a third-party system's runs."""
    runs = settings.systems[wildcards.system].runs
    return [runs[collection][split] for collection, split in targets_of(wildcards)]


def shown(wildcards):
    """Return the input of a table of the paper; refuse a config without its rows or columns."""
    with in_a_sentence():
        return sources.exhibit(settings, wildcards.exhibit)
