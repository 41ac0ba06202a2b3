"""The commands of `./run` that are not Snakemake's: plan, adopt, search, importance."""

from __future__ import annotations

import argparse
import os
import sys
from functools import reduce
from pathlib import Path
from typing import NamedTuple

from cdmae.cli import Parser
from cdmae.config import places, seeds, systems
from cdmae.config.load import read_yaml, stack
from cdmae.config.schema import Config
from cdmae.errors import InputError
from cdmae.fields import suggestion
from cdmae.layout import place
from workflow.facts import importance_of
from workflow.state import adopt, folder_of
from workflow.targets import check_target

ROOT = Path(__file__).resolve().parent.parent
YAML = (".yaml", ".yml")
TRAININGS = ("pretrain", "train_retriever", "train_reranker")  # the rules that keep a state


def configured(overlays: list[str]) -> Config:
    """Load the default config with others laid over it; raises `InputError` for one that is wrong."""
    values = reduce(stack, map(read_yaml, overlays), {})
    return places.load(ROOT / "config/config.yaml", overlays, values)


class Command(NamedTuple):
    """A command: what it does, the words it takes (their name and meaning), its options, and what one may type.

    Options are by name: meaning, type (bool is a flag) and what their value is called.
    """

    meaning: str
    words: tuple[str, str] | None
    options: dict[str, tuple[str, type, str]]
    examples: tuple[str, ...]


def command(arguments: list[str]) -> None:
    """Read the command line of one of our commands and run it."""
    name, *rest = arguments
    options = read(name, rest)
    options.configfile = [str(Path(path).resolve()) for path in options.configfile]
    os.chdir(ROOT)
    config = configured(options.configfile)
    {"plan": plan, "adopt": adopt_states, "search": search, "importance": importance}[name](config, options)


def read(name: str, arguments: list[str]) -> argparse.Namespace:
    """Read what follows a command: options by name, `configfile`, and its `words`."""
    meaning, words, options, examples = COMMANDS[name]
    parser = Parser(
        prog=f"./run {name}",
        description=f"{meaning[0].upper()}{meaning[1:]}.",
        epilog="\n  ".join(["examples:", *examples]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    if words:
        parser.add_argument("words", nargs="*", metavar=words[0], help=words[1])
    for option, (help_, kind, metavar) in options.items():
        form = {"action": "store_true"} if kind is bool else {"type": kind, "metavar": metavar}
        parser.add_argument(f"--{option}", help=help_, **form)
    parser.add_argument("--configfile", nargs="+", action="append", default=[], metavar="FILE", help=CONFIGFILE)
    parsed = parser.parse_intermixed_args(arguments)
    parsed.configfile, after = divided(parsed.configfile)
    if after and not words:
        parser.error(f"{after[0]} is no config file")
    parsed.words = [*getattr(parsed, "words", []), *after]
    return parsed


def divided(groups: list[list[str]]) -> tuple[list[str], list[str]]:
    """Divide what follows each --configfile: config files, and the words behind them, which end otherwise."""
    files, words = [], []
    for first, *others in groups:
        files.append(first)
        for word in others:
            (files if Path(word).suffix in YAML else words).append(word)
    return files, words


def plan(config: Config, options: argparse.Namespace) -> None:
    """Tell what a run takes; earlier runs of the default config and of the same one tell how fast this machine is.

    Of a machine with other GPUs or more cores than this one they tell nothing.
    """
    from cdmae.plan import machine
    from cdmae.plan.plan import text
    from cdmae.plan.work import Planned
    from workflow.dry_run import dry_run

    targets = [check_target(config, word) for word in options.words]
    here = machine.here()
    gpus = here.gpus or int(bool(options.gpu)) if options.gpus is None else options.gpus
    elsewhere = (options.cores or 0) > here.cores or options.gpus not in (None, here.gpus) or bool(options.gpu)
    memory = None if elsewhere else here.memory
    memory = memory if options.memory is None else options.memory * 2**30
    cores = here.cores if options.cores is None else options.cores
    machine_ = machine.Machine(cores, gpus, options.gpu or here.gpu, memory)
    jobs = list(dry_run(options.configfile, targets, cores=cores, gpus=gpus))
    earlier = [] if elsewhere else [(config, jobs)]
    if earlier and (options.configfile or targets):
        earlier.insert(0, (configured([]), list(dry_run(cores=cores, gpus=gpus))))
    for other, run in earlier:
        records = machine.records(place(other.results, "benchmarks"))
        machine_ = machine_.corrected(Planned(other), run, records)
    print(text(Planned(config), jobs, machine_, everything=options.all))


def adopt_states(config: Config, options: argparse.Namespace) -> None:
    """Move the newest older state of every training to where the code as it is now looks for one."""
    from workflow.dry_run import dry_run

    trainings = {
        f"{job.rule}/{job.name}": folder_of(*details.params.state, details.input)
        for job, details in dry_run(options.configfile).items()
        if job.rule in TRAININGS and all(map(os.path.exists, job.inputs))
    }
    adopted = [line for name, folder in trainings.items() if (line := adopt(name, folder))]
    print("\n".join(adopted or ["there is no older training state to go on from"]))


def search(config: Config, options: argparse.Namespace) -> None:
    """Ask a retriever: the passages nearest to a text."""
    text = joined("search", options.words)
    depth = 5 if options.depth is None else options.depth
    if depth < 1:
        raise InputError(f"--depth is {depth}; allowed: a whole number from 1")
    retrievers = systems.of_kind(config, "retriever")
    if not retrievers:
        raise InputError(
            "the config trains no retriever that could be asked; give the --configfile of a run that trains one, or "
            "add a system of kind retriever"
        )
    system = chosen("system", options.system, retrievers, seeds.first(retrievers)[-1:])
    known = systems.searched(config, system)
    collection = chosen("collection", options.collection, known, known)
    vectors = place(config.results, "vectors", system=system, collection=collection)
    become(
        "ask",
        {
            "system": system,
            "model": existing(place(config.results, "trained", system=system)),
            "vectors": existing(vectors, asked=not config.evaluation.keep_vectors),
            "collection": place(config.results, "collection", collection=collection),
            "text": text,
            "depth": depth,
            "length": config.evaluation.lengths.get(collection, 0),
        },
    )


def importance(config: Config, options: argparse.Namespace) -> None:
    """Shade a text by the importance of its words."""
    text = joined("importance", options.words)
    encoders = systems.masked_by_importance(config)
    if not encoders:
        raise InputError(
            "no encoder of the config is masked by importance, so that there is none; give the --configfile of a run "
            "that has one, or add an encoder with decoder_masking: importance"
        )
    encoder = chosen("encoder", options.encoder, encoders, encoders[-1:])
    tokenizer = place(config.results, "tokenizer", start=config.encoders[encoder].start)
    become(
        "shade",
        {"table": existing(importance_of(config, encoder)), "tokenizer": existing(tokenizer), "text": text},
    )


def joined(name: str, words: list[str]) -> str:
    """Return the words of a question as one text."""
    if not words:
        raise InputError(f"{name} needs words, such as {COMMANDS[name].examples[0]}")
    return " ".join(words)


def chosen(what: str, name: str | None, allowed: list[str], default: list[str]) -> str:
    """Return a name of the config, or the first default."""
    if name is None and default:
        return default[0]
    if name not in allowed:
        raise InputError(f"--{what} is {name or 'missing'}; {suggestion(name or '', allowed)}")
    return name


def existing(path: str, *, asked: bool = False) -> str:
    """Check that a result is there; `asked`: that a run makes only where one asks for it."""
    if not Path(path).exists():
        what = f"./run {path}" if asked else "./run"
        raise InputError(f"{path} is not made yet; {what} with the same config files makes it")
    return path


def become(script: str, options: dict[str, object]) -> None:
    """Run a script in the place of this process."""
    words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    os.execv(sys.executable, [sys.executable, f"workflow/scripts/{script}.py", *words])


CONFIGFILE = "config files, as for a run: laid over config/config.yaml, later ones over earlier ones"
COMMANDS = {
    "plan": Command(
        "tell what a run takes: jobs, hours, disk, memory",
        (
            "TARGET",
            "what would be asked of a run: a table or figure such as table_stages, or a path such as "
            "results/report/index.html; default: the whole run",
        ),
        {
            "cores": ("processor cores; default: those of this machine", int, "N"),
            "gpus": ("GPUs; default: those of this machine, or 1 if it has none but --gpu is given", int, "N"),
            "gpu": ("their kind: h200, h100, a100, l40s, v100, rtx4090; default: that of this machine", str, "KIND"),
            "memory": ("memory; default: that of this machine, unknown if another one is described", int, "GB"),
            "all": ("count what is made already, too", bool, ""),
        },
        (
            "./run plan",
            "./run plan table_main",
            "./run plan --configfile config/paper.yaml --cores 128 --gpus 8 --gpu h200 --memory 1024",
        ),
    ),
    "adopt": Command(
        "go on from the newest training states that an edit of the code has orphaned; for edits that leave the results "
        "as they are",
        None,
        {},
        ("./run adopt", "./run adopt --configfile mine.yaml"),
    ),
    "search": Command(
        "ask a trained retriever: the passages nearest to a text",
        ("WORD", "the text, in quotation marks or not"),
        {
            "system": ("a retriever of the config; default: the last one", str, "NAME"),
            "collection": ("a collection that it has searched; default: the first one", str, "NAME"),
            "depth": ("how many passages are shown; default: 5", int, "N"),
        },
        (
            './run search "compute the determinant of a matrix"',
            "./run search --system mae-stage1 --collection networkx --depth 3 shortest path",
        ),
    ),
    "importance": Command(
        "shade a text by the importance of its words",
        ("WORD", "the text, in quotation marks or not"),
        {"encoder": ("an encoder with importance-aware masks; default: the last one", str, "NAME")},
        ('./run importance "hokey stuff is a crossword puzzle clue"',),
    ),
}
