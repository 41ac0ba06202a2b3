"""The commands of ``./run`` that Snakemake lacks.

Their signatures are their command lines, their docstrings the help texts.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from inspect import Parameter, signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cdmae.cli import read_arguments
from cdmae.config import seeds, systems
from cdmae.config.checks import read_measure
from cdmae.config.load import load
from cdmae.config.reading import check_typed, gather
from cdmae.config.schema import Config
from cdmae.errors import InputError
from cdmae.fields import suggestion
from cdmae.formats import memory as formatted
from cdmae.formats import plural
from cdmae.layout import place
from cdmae.log import say
from workflow import state
from workflow.facts import importance_of
from workflow.surroundings import DEVICE, device_here, lock

if TYPE_CHECKING:
    from cdmae.exporting.folder import Source

ROOT = Path(__file__).resolve().parent.parent
YAML = (".yaml", ".yml")


def configured(overlays: list[str], overrides: dict[str, Any] | None = None) -> Config:
    """Load the default config, overlay configs and `overrides` on it; change to the checkout.

    Paths in the config are relative to the checkout.

    Raises `InputError` for a wrong config.
    """
    os.chdir(ROOT)
    return load(gather(ROOT / "config/config.yaml", overlays, overrides))


def command(arguments: list[str]) -> None:
    """Run one of the commands of this module with the options of the command line."""
    name, *rest = arguments
    positional, options = read(name, rest)
    COMMANDS[name](*positional, **options)


def read(name: str, arguments: list[str]) -> tuple[list[str], dict[str, Any]]:
    """Return the positional arguments of a command, and its options by name."""
    options = read_arguments(COMMANDS[name], arguments, f"./run {name}")
    after: list[str] = []
    if "configfile" in options:
        options["configfile"], after = divided(options["configfile"])
    kinds = {key: each.kind for key, each in signature(COMMANDS[name]).parameters.items()}
    positional = [key for key, kind in kinds.items() if kind is Parameter.VAR_POSITIONAL]
    if after and not positional:
        raise InputError(f"{after[0]} is not a config file; ./run {name} --help lists the options")
    given = [word for key in positional for word in options.pop(key)]
    return [*given, *after], options


def divided(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Split the words after --configfile into config files and other words.

    The first word is a file, and so is every word that ends in .yaml or .yml.
    """
    files = [word for place, word in enumerate(arguments) if not place or Path(word).suffix in YAML]
    return [str(Path(file).resolve()) for file in files], [
        word for word in arguments if word not in files
    ]


def plan(
    *targets: str,
    configfile: list[str] = (),  # type: ignore[assignment]
    cores: int | None = None,
    gpus: int | None = None,
    gpu: str = "",
    memory: int | None = None,
    config: list[str] = (),  # type: ignore[assignment]
    set_scatter: list[str] = (),  # type: ignore[assignment]
    all: bool = False,
) -> None:
    """Estimate the jobs, hours, disk and memory of a run.

    Targets are as for a run: a table or figure such as table_stages, or a path such as
    results/report/index.html. The default is the whole run, on this machine. Options describe
    another machine:

      --cores       processor cores
      --gpus        GPUs; default on a machine without GPUs: 1 with --gpu, otherwise 0
      --gpu         kind of the GPUs: h200, h100, a100, l40s, v100, rtx4090
      --memory      memory in GB; unknown by default for another machine
      --all         count finished jobs, too
      --configfile  config files as for a run, which overlay config/config.yaml
      --config      values as for a run, such as seed=3
      --set-scatter shards=N divides jobs as for a run

    Times are sums of prices, which cdmae/plan/prices.csv lists with their sources; none is measured
    on this machine.

    Examples:
      ./run plan
      ./run plan table_main
      ./run plan --configfile config/paper.yaml --cores 128 --gpus 8 --gpu h200 --memory 1024
    """
    from cdmae.plan import machine
    from cdmae.plan.plan import text
    from cdmae.plan.planned import Planned
    from workflow import recorded
    from workflow.dry_run import dry_run

    values, scatter = values_of(config, set_scatter)
    settings = configured(configfile, values)
    here = machine.here()
    elsewhere = (cores or 0) > here.cores or gpus not in (None, here.gpus) or bool(gpu)
    size = {
        "cores": here.cores if cores is None else cores,
        "gpus": here.gpus or int(bool(gpu)) if gpus is None else gpus,
    }
    bytes_ = None if elsewhere else here.memory
    if memory is not None:
        bytes_ = memory * 2**30
    machine_ = machine.Machine(**size, gpu=gpu or here.gpu, memory=bytes_)
    device_here()
    # jobs request the GPUs of the described machine
    os.environ[DEVICE] = "gpu" if size["gpus"] else "cpu"
    planned = dry_run(configfile, targets, **size, values=values, scatter=scatter)
    print(text(Planned(settings), list(planned), machine_, everything=all))
    for line in recorded.summary(planned.values()):
        print(f"changed    {line}")


def values_of(config: list[str], set_scatter: list[str]) -> tuple[dict[str, Any], dict[str, int]]:
    """Read the values of ``--config`` and ``--set-scatter`` as Snakemake does."""
    from snakemake import cli
    from snakemake.exceptions import CliException

    try:
        values = cli.parse_config(config)
        scatter = cli.parse_set_scatter(set_scatter)
    except (CliException, ValueError) as error:
        raise InputError(f"{error}; ./run plan --help lists the options") from None
    check_typed(config)
    return values, scatter


def adopt(*, configfile: list[str] = ()) -> None:  # type: ignore[assignment]
    """Resume from the newest training states that an edit of the code has orphaned.

    Use it after edits that do not change any result. The states are moved to the folders in which
    the edited code looks for them.

      --configfile  config files as for a run, which overlay config/config.yaml

    Examples:
      ./run adopt
      ./run adopt --configfile mine.yaml
    """
    from workflow.dry_run import dry_run

    config = configured(configfile)
    trainings = {
        f"{job.rule}/{job.name}": state.folder_of(*details.params.state, details.input)
        for job, details in dry_run(configfile).items()
        if hasattr(details.params, "state") and all(map(os.path.exists, job.inputs))
    }
    with lock(config.results):
        adopted = [state.adopt(name, folder) for name, folder in trainings.items()]
    lines = [line for line in adopted if line]
    print("\n".join(lines or ["there is no older training state to resume from"]))


def search(
    *text: str,
    configfile: list[str] = (),  # type: ignore[assignment]
    system: str | None = None,
    collection: str | None = None,
    depth: int = 5,
) -> None:
    """Print the passages that a system ranks first for a text.

    The text is one or several words, in quotation marks or not. A running `./run serve` of the same
    config answers at once.

      --system      a system of the config; default: the best one on dev
      --collection  a collection of the evaluation; default: the first one without judgments, or
                    the first one
      --depth       number of passages, up to evaluation.depth; default: 5
      --configfile  config files as for a run, which overlay config/config.yaml

    Examples:
      ./run search "fit a polynomial to data points"
      ./run search --system mae-stage1 --collection networkx --depth 3 shortest path
    """
    config = configured(configfile)
    question = joined("search", text, "fit a polynomial to data points")
    most = config.evaluation.depth
    if not 1 <= depth <= most:
        raise InputError(
            f"--depth is {depth}; allowed: a whole number from 1 to {most}, evaluation.depth"
        )
    asked = askable(config)
    collection = chosen_collection(config, collection)
    system = chosen("system", system, asked, [] if system else [best_system(config, asked)])
    about = described(config, system, collection)
    folder = existing(place(config.results, "collection", collection=collection))

    from cdmae.serving import running

    found = running.ask(
        config.results,
        running.fingerprint(about, folder),
        q=question,
        system=system,
        collection=collection,
        k=depth,
    )
    if found is None:
        found = searched(config, about, collection, question, depth)

    from cdmae.retrieval.answers import Answer, show

    answers = [
        Answer(hit["score"], hit["passage_id"], hit["title"] or hit["summary"], hit["text"])
        for hit in found["hits"]
    ]
    print(f"{system} on {collection}, {found['passages']:,} passages:\n", file=sys.stderr)
    width = min(shutil.get_terminal_size((100, 24)).columns, 100)
    print(show(question, answers, width=width, coloured=coloured()))


def searched(
    config: Config, about: dict[str, Any], collection: str, question: str, depth: int
) -> dict[str, Any]:
    """Answer a query in this process, in the form of a server's GET /search."""
    from cdmae.collections.store import count_passages, take_passages
    from cdmae.retrieval.asking import Question, ask

    folder = place(config.results, "collection", collection=collection)
    length = config.evaluation.lengths.get(collection, 0)
    run = ask(about, Question(question, config.evaluation.depth, length)).run
    rows, scores = (values[:depth] for values in run.ranked(0))
    summaries = cut_queries(config, collection)
    hits = [
        {**passage, "score": score, "summary": summaries.get(row, "")}
        for row, score, passage in zip(
            rows.tolist(), scores.tolist(), take_passages(folder, rows).to_pylist(), strict=True
        )
    ]
    return {"passages": count_passages(folder), "hits": hits}


def cut_queries(config: Config, collection: str) -> dict[int, str]:
    """Return the sentences that were cut from passages to be their queries, by passage row."""
    from cdmae.collections.store import judged_queries

    if not config.collections[collection].settings.queries_are_cut:
        return {}
    return judged_queries(place(config.results, "collection", collection=collection))


def serve(
    *,
    configfile: list[str] = (),  # type: ignore[assignment]
    system: str = "",
    host: str = "127.0.0.1",
    port: int = 8000,
    judge: str = "",
    collection: str | None = None,
    queries: str = "",
) -> None:
    """Serve a page that answers queries with the systems of a finished run.

    Models and indexes stay in memory. The page compares up to three systems; /search answers in
    JSON, which /docs describes. Ctrl-C ends the server.

      --system      names between commas; default: all that can answer queries
      --host        the address to listen on; default: 127.0.0.1, which only this machine reaches
      --port        the port to listen on, or 0 for any free one; default: 8000
      --judge       a folder for judgments: adds a page that grades the pooled best ten passages of
                    the systems. The folder is a collection for `source: beir` at any time
      --collection  the collection to judge; default: one without judgments, else the first
      --queries     a file of queries to judge, one per line; more can be typed on the page
      --configfile  config files as for a run, which overlay config/config.yaml

    Examples:
      ./run serve
      ./run serve --system bm25,fused --port 8080
      ./run serve --judge judged --queries questions.txt
    """
    from cdmae.serving.judging import read_queries

    if not 0 <= port <= 65535:
        raise InputError(f"--port is {port}; allowed: a whole number from 0 to 65535")
    if (collection or queries) and not judge:
        raise InputError("--collection and --queries choose what is judged; add --judge FOLDER")
    folder = Path(judge).resolve()  # before the working directory changes
    texts = read_queries(Path(queries).resolve()) if queries else []
    config = configured(configfile)
    asked = askable(config)
    names = [chosen("system", name, asked, []) for name in system.split(",") if name] or asked
    judged = chosen_collection(config, collection) if judge else ""
    best = best_system(config, names) if systems.shown(config) else names[0]
    shading = systems.masked_by_importance(config)
    about = {
        collection: {name: described(config, name, collection) for name in names}
        for collection in config.evaluation.collections
    }
    folders = {
        name: Path(existing(place(config.results, "collection", collection=name))) for name in about
    }

    from cdmae.plan import machine
    from cdmae.serving import connections, running, server
    from cdmae.serving.engine import Engine

    engine = Engine(
        about,
        folders,
        depth=config.evaluation.depth,
        lengths=config.evaluation.lengths,
        summaries={name: cut_queries(config, name) for name in about},
        shades=importance_files(config, shading[-1]) if shading else None,
    )
    here = machine.here()
    needed = engine.memory()
    say(f"loading {plural(len(names), 'system')}: about {formatted(needed / 2**20)} of memory")
    if here.memory and needed > here.memory:
        raise InputError(
            f"this machine has {formatted(here.memory / 2**20)} of memory; choose fewer systems "
            "with --system"
        )
    engine.warm()
    from workflow.judging import judging_of

    judging = judging_of(config, engine, folder, judged, texts) if judge else None
    app = server.make(
        engine,
        title=config.report.title or "Search",
        system=best,
        host=host,
        threads=here.cores,
        judging=judging,
    )

    @contextmanager
    def started(url: str) -> Iterator[None]:
        say(f"open {url}{'judge' if judge else ''} in a browser; Ctrl-C ends the server")
        with running.announced(config.results, url):
            yield
        say("the server has ended")

    connections.run(app, host, port, started)


def chosen_collection(config: Config, name: str | None) -> str:
    """Return a collection of the evaluation: by default the first without judgments, or the first.

    Users ask their own queries about the former.
    """
    known = list(config.evaluation.collections)
    return chosen("collection", name, known, systems.only_searched(config) or known)


def askable(config: Config) -> list[str]:
    """List the systems that can answer new queries.

    Raises `InputError` if there is none.
    """
    asked = [name for name in config.systems if can_be_asked(config, name)]
    if not asked:
        raise InputError(
            "the config has no system that can answer queries; give the --configfile of a run "
            "that has one, or add a system of kind bm25 or retriever"
        )
    return asked


def can_be_asked(config: Config, name: str) -> bool:
    """Return whether a system can answer new queries; third-party runs and their fusions cannot."""
    system = config.systems[name]
    return system.answers and all(can_be_asked(config, part) for part in system.parts())


def best_system(config: Config, names: list[str]) -> str:
    """Return the first-seed system with the best measure on the split that the report shows.

    Raises `InputError` if no split is evaluated.
    """
    from cdmae.evaluation.per_query import read_measures

    if not systems.shown(config):
        raise InputError(
            "the config evaluates no split, which would show the best system; choose one with "
            f"--system: {', '.join(names)}"
        )
    collection, split = systems.shown(config)
    measure = config.evaluation.measured(collection, split)[0]
    means = {}
    for name in seeds.first(names):
        path = existing(place(config.results, "measures", system=name))
        frame = read_measures(path)
        rows = frame[
            (frame["collection"] == collection)
            & (frame["split"] == split)
            & (frame["measure"] == measure)
        ]
        if rows.empty:
            raise InputError(
                f"{path} has no {measure} on {collection} {split}; ./run updates the file"
            )
        means[name] = rows["value"].mean()
    return max(means, key=means.get)


def described(config: Config, name: str, collection: str) -> dict[str, Any]:
    """Return a system for `cdmae.retrieval.asking`: its settings and the folders that it reads."""

    def made(what: str, *, asked: bool = False, **names: str) -> str:
        return existing(
            place(config.results, what, **{"collection": collection, "system": name, **names}),
            asked=asked,
        )

    def part(other: str) -> dict[str, Any]:
        return described(config, other, collection)

    return config.systems[name].asked(config, name, made, part)


def importance(*text: str, configfile: list[str] = (), encoder: str | None = None) -> None:  # type: ignore[assignment]
    """Shade a text by the importance of its words.

    The text is one or several words, in quotation marks or not. Importance is in nats. A question
    mark follows words whose importance is mostly a guess, because fewer than half of their n-grams
    occur more than once in the collection.

      --encoder     an encoder with importance-aware masks; default: the last one
      --configfile  config files as for a run, which overlay config/config.yaml

    Examples:
      ./run importance "return the number of dimensions of the input array"
    """
    config = configured(configfile)
    whole = joined("importance", text, "return the number of dimensions of the input array")
    encoders = systems.masked_by_importance(config)
    if not encoders:
        raise InputError(
            "no encoder of the config is masked by importance; "
            "give the --configfile of a run that has one, "
            "or add an encoder with decoder_masking: importance"
        )
    encoder = chosen("encoder", encoder, encoders, encoders[-1:])
    table, tokenizer = importance_files(config, encoder)

    from cdmae.importance import shading

    scored = shading.score(whole, table, tokenizer)
    print(shading.for_terminal(scored) if coloured() else shading.as_numbers(scored))
    if any(word.mark for word in scored):
        say(shading.NOTE)


def importance_files(config: Config, encoder: str) -> tuple[Path, Path]:
    """Return an encoder's table of importance and the folder of its tokenizer."""
    table = existing(importance_of(config, encoder))
    tokenizer = existing(place(config.results, "tokenizer", start=config.encoders[encoder].start))
    return Path(table), Path(tokenizer)


def compare(*runs: str, qrels: str, measures: str = "") -> None:
    """Compare runs with the first one: means, differences, paired t-tests corrected by Holm.

    Runs are two or more files with lines `query_id Q0 passage_id rank score system`. Files may be
    compressed (.gz).

      --qrels     judgments, in TREC's four columns or BEIR's three
      --measures  measures of ir_measures, separated by commas; default:
                  RR@10,R@50,R@1000,nDCG@10

    Examples:
      ./run compare bm25.run mine.run --qrels dev.tsv --measures nDCG@10,RR@10
    """
    from cdmae.config.schema import Evaluation
    from cdmae.evaluation import compare

    if len(runs) < 2:
        raise InputError(
            "compare needs at least two runs, such as "
            "./run compare bm25.run mine.run --qrels dev.tsv"
        )
    named = measures.split(",") if measures else Evaluation().measures
    names = [str(read_measure(name, of=("--measures",))) for name in named]
    for index, name in enumerate(names):
        if name in names[:index]:
            raise InputError(f"--measures has {name} twice; allowed: each once")
    print(compare.table(compare.compare(list(map(Path, runs)), Path(qrels), names)))


def sizes(
    *,
    configfile: list[str] = (),  # type: ignore[assignment]
    system: list[str] = (),  # type: ignore[assignment]
    collection: str | None = None,
    split: str | None = None,
    dimensions: str = "",
) -> None:
    """Measure smaller vectors of retrievers: with fewer dimensions, or fewer bits per number.

    One row per size: bytes per passage, the first measure of the evaluation, and a paired t-test
    against the system's full vectors, corrected by Holm. It reads the results of a run.

      --system      one or several retrievers of the config; default: the best one on dev
      --collection  a collection of the evaluation; default: the one that the report shows
      --split       a split of the collection; default: the first one
      --dimensions  numbers separated by commas; default: a half, a quarter and an eighth of all
      --configfile  config files as for a run, which overlay config/config.yaml

    Examples:
      ./run sizes --system cdmae-stage3 --split test
      ./run sizes --configfile config/smoke.yaml --system mae-stage1 --dimensions 24,12
    """
    config = configured(configfile)
    retrievers = [name for name, each in config.systems.items() if each.is_dense(config)]
    if not retrievers:
        raise InputError(
            "the config has no dense retriever; give the --configfile of a run that has one"
        )
    shown = systems.shown(config)
    judged = [name for name, splits in config.evaluation.collections.items() if splits]
    collection = chosen("collection", collection, judged, shown[:1])
    splits = list(config.evaluation.collections[collection])
    split = chosen("split", split, splits, splits[:1])
    if not all(width.isdecimal() for width in dimensions.split(",") if dimensions):
        raise InputError(
            f"--dimensions is {dimensions}; allowed: whole numbers separated by commas, such as "
            "384,192"
        )
    for name in system:
        chosen("system", name, retrievers, [])
    compared = list(dict.fromkeys(system)) or [best_system(config, retrievers)]
    abouts = {name: described(config, name, collection) for name in compared}
    folder = existing(place(config.results, "collection", collection=collection))

    from cdmae.evaluation import compare, compression
    from cdmae.plan import machine
    from cdmae.retrieval.asking import encode
    from cdmae.retrieval.vectors import read_vectors
    from cdmae.training import setup

    measure = config.evaluation.measured(collection, split)[0]
    threads = machine.here().cores
    frames = {
        name: compression.compare_sizes(
            partial(
                encode, about, length=config.evaluation.lengths.get(collection, 0), threads=threads
            ),
            read_vectors(about["vectors"]),
            Path(folder),
            split,
            measure,
            read_measure(measure).params.get("cutoff", config.evaluation.depth),
            widths=[int(width) for width in dimensions.split(",") if dimensions],
            threads=threads,
            device=str(setup.device()),
        )
        for name, about in abouts.items()
    }
    title = f"{', '.join(frames)} on {collection} {split}"
    print(f"{title}\n\n{compare.table(compression.side_by_side(frames))}")


def check(
    *,
    configfile: list[str] = (),  # type: ignore[assignment]
    write: bool = False,
) -> None:
    """Compare a finished run with the numbers of the README, which config/expected.yaml lists.

    Each number is [OK] if it is equal as shown, [OKish] if another seed may cause the difference,
    and [FAIL] otherwise; then the exit status is 1. Tables that other config files or seeds make
    are left out.

      --write       write the run's numbers into config/expected.yaml, and print their rows in
                    Markdown
      --configfile  config files as for a run, which overlay config/config.yaml

    Examples:
      ./run check
      ./run check --configfile config/objectives.yaml
    """
    from cdmae.evaluation import expected
    from cdmae.evaluation.per_query import read_measures

    config = configured(configfile)
    path = ROOT / "config/expected.yaml"
    tables = expected.read(path)
    names = [os.path.relpath(file, ROOT) for file in configfile]
    chosen_tables = expected.made_by(tables, names, config.seeds or (config.seed,))
    if not chosen_tables:
        raise InputError(f"{path} has no table of this config with these seeds")

    def values(system: str, collection: str, split: str, measure: str) -> list[Any]:
        replicas = [name for name in config.systems if seeds.base(name) == system]
        if not replicas:
            raise InputError(f"{path} names the system {system}, which the config does not have")
        files = [existing(place(config.results, "measures", system=name)) for name in replicas]
        return expected.of_system(
            [read_measures(file) for file in files], measure, collection, split
        )

    least = expected.LEAST if config.seeds else config.report.noise
    failed = 0
    for index in chosen_tables:
        table = tables[index]
        read_values = partial(values, measure=table.measure)
        found = expected.measured(table, read_values, least)
        if write:
            tables[index] = found
            print(f"{table.title}\n\n{expected.markdown(found)}\n")
            continue
        verdicts = expected.compare(table, found, least)
        failed += sum(verdict.word == "FAIL" for verdict in verdicts)
        print("\n".join([table.title, *map(str, verdicts), ""]))
    if write:
        expected.write(path, tables)
    if failed:
        raise InputError(f"{plural(failed, 'number')} of the README differ by more than the noise")


def export(
    *name: str,
    to: str,
    configfile: list[str] = (),  # type: ignore[assignment]
    collection: str | None = None,
    onnx: bool = True,
) -> None:
    """Copy a model of a finished run into a folder with the files that other programs need.

    The name is a retriever, a reranker or an encoder of the config. docs/use.md loads the folder in
    other programs. Next to the model's own files and its card it has:

      onnx/model.onnx   the model with its pooling and normalisation, checked with onnxruntime
      passages.parquet  docid, vector and text of a retriever's passages
      passages.faiss    an exact index of dense vectors
      passages.jsonl    impacts of sparse vectors, for Anserini

      --to          a new or empty folder
      --collection  the passages to export; default: the collection that the report shows
      --no-onnx     without the ONNX file, which needs packages that ./run test installs
      --configfile  config files as for a run, which overlay config/config.yaml

    Examples:
      ./run export cdmae-stage3 --to retriever
      ./run export mae --to encoder --no-onnx
    """
    output = Path(to).resolve()  # before the working directory changes
    config = configured(configfile)
    models = [*systems.trained(config), *config.encoders]
    if len(name) != 1:
        raise InputError(f"export needs the name of one model; allowed: {', '.join(models)}")
    if name[0] not in models:
        raise InputError(f"{name[0]} is not a trained model; {suggestion(name[0], models)}")
    source = exported(config, name[0], collection)

    from cdmae.exporting import folder
    from cdmae.plan import machine

    files = folder.export(source, output, threads=machine.here().cores, onnx=onnx)
    print("\n".join(f"{output / file}" for file in files))


def exported(config: Config, name: str, collection: str | None) -> Source:
    """Return the folders that an export of a system or an encoder reads."""
    from cdmae.exporting.folder import Source

    searched = list(config.evaluation.collections)
    collection = chosen("collection", collection, searched, systems.shown(config)[:1])
    passages = existing(place(config.results, "collection", collection=collection))
    if name in config.encoders:
        return Source(existing(place(config.results, "encoder", encoder=name)), "encoder", passages)
    kind = config.systems[name].kind
    vectors = described(config, name, collection)["vectors"] if kind == "retriever" else ""
    return Source(existing(place(config.results, "model", system=name)), kind, passages, vectors)


def chosen(what: str, name: str | None, allowed: list[str], default: list[str]) -> str:
    """Return a name from the config, or the first allowed name by default."""
    if name is None and default:
        return default[0]
    if name not in allowed:
        raise InputError(f"--{what} is {name or 'missing'}; {suggestion(name or '', allowed)}")
    return name


def existing(path: str, *, asked: bool = False) -> str:
    """Check that a result exists; `asked`: whether a run produces it only on request."""
    if not Path(path).exists():
        what = f"./run {path}" if asked else "./run"
        raise InputError(f"{path} does not exist yet; {what} with the same config files makes it")
    return path


def joined(name: str, words: tuple[str, ...], example: str) -> str:
    """Return the words of a command as one text."""
    text = " ".join(words)
    if not text.strip():
        raise InputError(f'{name} needs a text, for example ./run {name} "{example}"')
    return text


def coloured() -> bool:
    """Return whether standard output may have colours."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


COMMANDS = {
    "plan": plan,
    "adopt": adopt,
    "search": search,
    "serve": serve,
    "importance": importance,
    "compare": compare,
    "sizes": sizes,
    "export": export,
    "check": check,
}
