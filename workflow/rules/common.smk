# Reads and checks the config, and helps the rules to fill in their paths and parameters.
#
# Key
#   <results>         a folder of this run; <logs> and <benchmarks> are others
#   {system}          a wildcard: its value comes from the requested path
#   {system.encoder}  a column: the encoder in the row of the config's system; `of` fills it in.
#                     A list gives several paths, an empty column gives none
#   {job.collection}  the collections that a job searches: its wildcard's, or all evaluated ones;
#                     {job.target} is COLLECTION.SPLIT of all evaluated ones
#   params.code       the fingerprints of the modules that a result depends on
#   params.settings   the settings that a result depends on; options or JSON in a command.
#                     Snakemake records both, and runs a job again if one of them has changed
#   other params      functions of `input` or `output`; their changes do not run a job again

import re
import signal
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from os.path import dirname

from cdmae.config import systems
from cdmae.config.load import load
from cdmae.config.reading import gather, lay, read_yaml
from cdmae.errors import InputError, said
from cdmae.plan import resources as requests
from cdmae.plan import sizes
from cdmae.plan.planned import Job, Planned
from workflow import engine, overlays
from workflow.circumstances import STARTED, now
from workflow.facts import FIGURES, TABLES, card, exhibit, facts, inputs, trec
from workflow.fingerprint import fingerprint
from workflow.recorded import Options, plain
from workflow.state import key_of
from workflow.surroundings import (
    check_prefix,
    check_records,
    device_here,
    image_here,
    pass_to_jobs,
)
from workflow.targets import check


@contextmanager
def in_a_sentence():
    """End the process with the message of an `InputError`, and nothing else.

    Snakemake would add text to the message of an `Exception`.
    """
    try:
        yield
    except InputError as error:
        raise SystemExit(said(error)) from error


def read_config():
    """Read the config from its files, or from the workflow that imports this one as a module."""
    default = source / "config/config.yaml"
    if engine.imported(workflow):
        return lay({} if config.get("standalone") else read_yaml(default), config)
    files = overlays.of(workflow)
    values = gather(default, files, workflow.config_settings.config)
    overlays.pass_on(workflow, files)
    return values


with in_a_sentence():
    device = device_here()
    settings = load(read_config())


pathvars:
    results=os.path.normpath(settings.results),
    logs="<results>/logs",
    benchmarks="<results>/benchmarks",


results = engine.path_of(workflow, "<results>")
with in_a_sentence():
    check_prefix(results, settings.results)
settings = replace(settings, results=results)
if workflow.is_main_process:  # once a run, not in every job
    with in_a_sentence():
        check_records(source, Path.cwd())
        sizes.check(settings)
    os.environ[STARTED] = now()


deployment = engine.deployment(workflow)
pass_to_jobs(own_environment=not deployment.isdisjoint({"CONDA", "APPTAINER"}))

# SLURM warns all processes of a job before its time limit. Trainers then save their state
# (cdmae/training/setup.py). This process, the shell and tee must ignore the signal, or they would
# end, and the trainer with them. Child processes inherit that a signal is ignored.
signal.signal(signal.SIGUSR1, signal.SIG_IGN)

# For --sdm conda: all jobs have one environment, for CPUs or for GPUs.
environment = f"../../envs/{device or 'cpu'}.yaml"


# For --sdm apptainer: the image that envs/cdmae.def makes, or another one.
if "APPTAINER" in deployment:
    with in_a_sentence():
        image = image_here(source)

    container: image


# --- paths ----------------------------------------------------------------------------------------

evaluated = list(dict.fromkeys(name for name, _ in systems.targets(settings)))
TARGETS = [f"{collection}.{split}" for collection, split in systems.targets(settings)]
COLLECTION_FILES = ("passages.parquet", "queries.parquet", "qrels.parquet", "about.json")
KEPT = settings.evaluation.keep_vectors

tables = {
    "collection": {
        name: {
            "files": [str(path) for path in entry.settings.depends()],
            "threads": entry.settings.threads(),
            **systems.texts(settings, name),
            # the length at which systems cut its texts; 0: their own lengths
            "length": settings.evaluation.lengths.get(name, 0),
        }
        for name, entry in settings.collections.items()
    },
    "start": {
        name: {
            "vocabulary": start.collection,
            "checkpoint": systems.model_files(start.checkpoint),
        }
        for name, start in settings.starts.items()
    },
    "encoder": systems.encoders(settings),
    "system": systems.systems(settings),
}
COLUMN = re.compile(r"{(\w+)\.(\w+)}")


def of(pattern):
    """Fill in the columns of a pattern."""

    def paths(wildcards):
        columns = {}
        for table, column in sorted(COLUMN.findall(pattern), key=lambda found: found[0] != "job"):
            row = job_row(wildcards) if table == "job" else tables[table][wildcards[table]]
            columns[f"{table}_{column}"] = row[column] or []
        return expand(COLUMN.sub(r"{\1_\2}", pattern), **columns, **dict(wildcards.items()))

    return paths


def keeps_vectors(wildcards):
    """Return whether a retriever's vectors are kept; otherwise a search computes them."""
    return systems.keeps_vectors(settings, wildcards.system)


def job_row(wildcards):
    """Return the collections and the targets (COLLECTION.SPLIT) that a job searches or measures."""
    return {"collection": wildcards.get("collection") or evaluated, "target": TARGETS}


def bm25_indexes(wildcards):
    """List BM25's index for each collection that a job searches."""
    own = settings.systems[wildcards.system]
    names = [wildcards.collection] if "collection" in wildcards.keys() else evaluated
    return [f"<results>/bm25/{own.indexed(name)}" for name in names]


def files_of(pattern):
    """Fill in the columns of a pattern with the user's files, to which modules add no prefix."""
    return lambda wildcards: [local(path) for path in of(pattern)(wildcards)]


def candidates(wildcards):
    """List the runs whose best passages a system scores; none if it scores all passages."""
    name = tables["system"][wildcards.system].get("candidates")
    if not name:
        return []
    if "split" in wildcards.keys():
        return f"<results>/negatives/{name}.{wildcards.collection}.{wildcards.split}.parquet"
    return [f"<results>/runs/{name}/{target}.parquet" for target in TARGETS]


def run_files(wildcards):
    """List the files of a third-party system's runs."""
    runs = tables["system"][wildcards.system]["runs"]
    found = [runs.get(name, {}).get(split) for name, split in targets_of(wildcards)]
    return [local(file) for file in found]


def folder(name):
    """Return the folder of an input that is a list of files; "" for an empty list."""
    return lambda wildcards, input: dirname(next(iter(input[name]), ""))


def targets_of(wildcards):
    """List the (collection, split) pairs of a job: its wildcards', or all that are evaluated."""
    if "split" in wildcards.keys():
        return [(wildcards.collection, wildcards.split)]
    return systems.targets(settings)


def only(names):
    """Return a pattern that matches some names, or nothing if there are no names."""
    return "|".join(sorted(names)) or "(?!)"


def of_kind(*kinds):
    """Return a pattern that matches the systems of some kinds."""
    return only(systems.of_kind(settings, *kinds))


wildcard_constraints:
    collection=only(settings.collections),
    start=only(settings.starts),
    importance=only(settings.importance),
    encoder=only(settings.encoders),
    system=only(settings.systems),
    split=only({split for *_, split in systems.mined(settings)}),


# --- reasons to run a job again -------------------------------------------------------------------


def entry(wildcard, values, form=plain):
    """Look up the settings of the entry that a wildcard names.

    form: their form in commands: `plain` for JSON, or `Options`.
    """
    recorded = {name: form(value) for name, value in values.items()}
    return lookup(dpath=f"{{{wildcard}}}", within=recorded)


@cache
def fingerprints(script, modules):
    """Map the modules that a script imports, and `modules` from settings, to their fingerprints."""
    with in_a_sentence():
        return fingerprint(f"workflow/scripts/{script}.py", modules)


def code(script, modules=None):
    """Return a function that maps the modules of a script to their fingerprints.

    modules: a function of the wildcards that lists further modules, which settings name.
    """
    return lambda wildcards: fingerprints(script, tuple(modules(wildcards)) if modules else ())


def modules_of(wildcards):
    """List the modules that the settings of an encoder name."""
    encoder = settings.encoders[wildcards.encoder]
    objective = [f"cdmae.pretraining.objectives.{encoder.objective}"] if encoder.pretrained else []
    maskings = dict.fromkeys(encoder.maskings)
    return objective + [f"cdmae.masking.strategies.{masking}" for masking in maskings]


def query_encoder(wildcards):
    """List the module that encodes the queries of a system with feedback."""
    row = tables["system"].get(wildcards.system)
    return [f"cdmae.retrieval.{row['encoder']['encoded_by']}"] if row else []


def state(rule, settings, code):
    """Return the folder of a training's states, and a hash of its settings and code."""

    def folder_and_key(wildcards, output):
        folder = f"{results}/state/{rule}/{Path(output[0]).name}"
        return [folder, key_of([settings(wildcards), code(wildcards)])]

    return folder_and_key


def where(wildcards):
    """List the splits that a job searches or measures; `folders` lists their collections."""
    return {"splits": [split for _, split in targets_of(wildcards)]}


def folders(name):
    """Return a function that lists the folder of each target's collection.

    name: an input that is in these folders.
    """

    def paths(wildcards, input):
        stored = {Path(path).parent.name: dirname(path) for path in input[name]}
        return [stored[collection] for collection, _ in targets_of(wildcards)]

    return paths


def lengths(wildcards):
    """List the lengths at which texts of these collections are cut; 0: the system's own length."""
    return [tables["collection"][name]["length"] for name, _ in targets_of(wildcards)]


def depth(wildcards):
    """Return the number of passages per query in a run; stages decide it for training queries."""
    if "split" not in wildcards.keys():
        return settings.evaluation.depth
    return systems.mined(settings)[wildcards.system, wildcards.collection, wildcards.split]


def length(wildcards):
    """Return the length at which passages are cut; 0: the system's own length."""
    own = tables["system"][wildcards.system].get("passage_length", 0)
    return tables["collection"][wildcards.collection]["length"] or own


def chosen(wildcards, *keys):
    """Return some settings of the system that a wildcard names."""
    row = tables["system"][wildcards.system]
    return {key: row[key] for key in keys}


def encoding(wildcards):
    """List the settings of a retriever's vectors."""
    own = chosen(wildcards, "engine")
    if own["engine"] == "bm25":
        own |= chosen(wildcards, "k1", "b")
    return Options(length=length(wildcards), **own)


def encoding_external(wildcards):
    """List the settings of an external retriever's vectors."""
    own = chosen(wildcards, "model", "passage_prompt", "head", "engine")
    return Options(length=length(wildcards), **own)


def searching(wildcards):
    """List the settings of a retriever's search."""
    row = tables["system"][wildcards.system]
    scored = chosen(wildcards, "candidates_depth") if row.get("candidates") else {}
    scored |= chosen(wildcards, "uses") if "uses" in row else {}
    return Options(where(wildcards), lengths=lengths(wildcards), depth=depth(wildcards), **scored)


def searching_external(wildcards):
    """List the settings of an external retriever's search."""
    lengths_and_prompts = ("query_length", "passage_length", "query_prompt", "passage_prompt")
    return Options(searching(wildcards), **chosen(wildcards, "model", "head", *lengths_and_prompts))


def searching_feedback(wildcards):
    """List the settings of a search with vector feedback."""
    feedback = tables["system"][wildcards.system]["depth"]
    return Options(
        searching(wildcards), feedback=feedback, **chosen(wildcards, "encoder", "alpha", "beta")
    )


def sparse_encoder(wildcards):
    """List the settings of a sparse system that decide the vectors of queries."""
    system = settings.systems[wildcards.system]
    keys = ("model", "head", "query_length", "query_prompt", "uses")
    own = {key: value for key, value in system.values().items() if key in keys}
    return {"encoded_by": system.encoded_by, **own}


def measuring_sparsity(wildcards):
    """List the settings that decide the vectors of a sparse system's queries."""
    encoder = sparse_encoder(wildcards)
    return Options(where(wildcards), lengths=lengths(wildcards), encoder=encoder)


def trained_folder(wildcards):
    """Return the folder of a system's trained model; an empty list for a third-party model."""
    model = settings.systems[wildcards.system].model_of(settings, wildcards.system)
    return f"{results}/trained/{model}" if model else []


def searching_bm25(wildcards):
    """List the settings of a search by BM25."""
    return Options(where(wildcards), depth=depth(wildcards), **chosen(wildcards, "k1", "b"))


def reranking(wildcards):
    """List the settings of a reranker, which has its own depth."""
    return Options(searching(wildcards), **chosen(wildcards, "depth"))


def fusing(wildcards):
    """List the settings of a fusion whose weights are known."""
    return Options(depth=depth(wildcards))


def reading(wildcards):
    """List the settings of runs from files."""
    return Options(where(wildcards), depth=depth(wildcards))


def drawing(wildcards):
    """List the settings that decide which candidates a teacher scores."""
    stage = settings.stages[settings.systems[wildcards.system].stage]
    return Options(settings=stage.drawn())


def measuring(wildcards):
    """List the collections and splits on which a system is measured, and the measures of each."""
    targets = targets_of(wildcards)
    measures = [
        " ".join(settings.evaluation.measured(collection, split)) for collection, split in targets
    ]
    return Options(
        where(wildcards), names=[collection for collection, _ in targets], measures=measures
    )


def facts_of(page, below):
    """List the contents of the report or of an exhibit, with paths below a folder."""
    config = replace(settings, results=below)
    return facts(config) if page == "report" else exhibit(config, page)


# --- arguments ------------------------------------------------------------------------------------


def launch(wildcards, input):
    """Return the path of workflow/launch, which runs a script."""
    return source_path("workflow/launch")


def needed(wildcards, output):
    """List the settings that need enough of a collection, whose job checks them."""
    return plain(systems.needed(settings, Path(output[0]).parent.name))


def needed_of_all(wildcards, output):
    """List the settings that need enough of each evaluated collection.

    A function of the output: a change runs no job again.
    """
    return plain({name: systems.needed(settings, name) for name in evaluated})


def prompted(wildcards, output):
    """List the prompts that a tokenizer reads, and their lengths; its job checks them."""
    return plain(systems.prompts(settings, wildcards.start))


# --- resources ------------------------------------------------------------------------------------

planned = Planned(settings)
trainings = systems.waiting(settings)
waiting_for = {"encoder": trainings["encoders"], "system": trainings["systems"]}
FIRST = 100_000  # more than the priorities of all jobs that can run at the same time


def waiting(wildcard, rule=""):
    """Return the priority of an entry's jobs: the number of trainings in the chain that waits.

    The longest chain decides when a run ends. Jobs that request several GPUs of this machine come
    before all others. Snakemake keeps no GPU free for a job, so jobs with one GPU could delay them
    indefinitely. On a cluster, its own queue decides.
    """

    def priority(wildcards):
        gpus = requested(rule, wildcards).gpus if rule else 0
        several = min(gpus, engine.granted_gpus(workflow)) > 1
        return several * FIRST + waiting_for[wildcard][wildcards[wildcard]]

    return priority


def requested(rule, wildcards, threads=1):
    """Return a job as the plan prices it, with the GPUs that it requests.

    The job requests no GPUs if CDMAE_DEVICE is cpu.
    """
    job = Job(rule, "/".join(wildcards), threads=threads)
    return job._replace(gpus=0 if device == "cpu" else requests.gpus(planned, job))


def gpus_of(rule):
    """Request GPUs by the network and the work of a job."""
    return lambda wildcards: requested(rule, wildcards).gpus


def memory_of(rule):
    """Request the megabytes that the plan estimates, and more at each further attempt."""

    def megabytes(wildcards, threads, attempt):
        return requests.megabytes(planned, requested(rule, wildcards, threads), attempt)

    return megabytes


def minutes_of(rule):
    """Request three times the minutes that the plan estimates."""

    def minutes(wildcards, threads, attempt):
        return requests.minutes(planned, requested(rule, wildcards, threads), attempt)

    return minutes


def cores(most):
    """Count cores by the size of the inputs, one per 16 MB: small jobs run side by side."""

    def number(wildcards, input):
        if not all(map(os.path.exists, input)):
            return most
        files = []
        for path in map(Path, input):
            files += path.rglob("*") if path.is_dir() else [path]
        size = sum(file.stat().st_size for file in files if file.is_file())
        return max(1, min(most, size >> 24))

    return number


def network_cores(rule, most):
    """Count cores by the width of a job's network: one for a narrow network."""
    return lambda wildcards: requests.cores(planned, Job(rule, "/".join(wildcards)), most)
