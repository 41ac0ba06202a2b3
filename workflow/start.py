"""What `./run` does inside the environment: a command of its own, or Snakemake with the arguments given.

A config file that is missing or malformed is refused here in a sentence; Snakemake would answer with a traceback.
"""

from __future__ import annotations

import argparse
import difflib
import os
import re
import signal
import sys
from functools import reduce
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from cdmae import places, replicas, surroundings  # noqa: E402 (the checkout is not installed)
from cdmae.config import read_yaml, stack  # noqa: E402
from cdmae.errors import InputError, said  # noqa: E402
from cdmae.graph import Graph  # noqa: E402
from cdmae.jobs import FIGURES, TABLES, paths  # noqa: E402
from cdmae.lineage import Lineage, adopt  # noqa: E402
from cdmae.settings import suggestion  # noqa: E402

FLAGS = ("-n", "--dry-run", "-f", "--force", "-F", "--forceall", "-k", "--keep-going", "-p", "--printshellcmds",
         "--rerun-incomplete", "--ri")  # fmt: skip
COMPLETE = re.compile(r"=|^-[cj]\d+$")  # options that have their value


def main(arguments: list[str]) -> None:
    """Run one of our commands, or become Snakemake."""
    os.environ["PYTHONPATH"] = str(ROOT)
    if arguments and arguments[0] in COMMANDS:
        command(arguments)
        sys.stdout.flush()
        return
    if arguments[:1] == ["--help-snakemake"]:
        os.execv(sys.executable, [sys.executable, "-m", "snakemake", "--help"])
    check_words(arguments)
    arguments, overlays = sorted_out(arguments)
    os.chdir(ROOT)
    check_profile(arguments)
    check_surroundings(arguments)
    if "--config" not in arguments:
        found = graph(overlays)  # what is wrong with it is said now; with --config Snakemake finds it out
        for name in {*TABLES, *FIGURES}.intersection(Path(word).stem for word in arguments):
            found.exhibit(name)
        check_paths(arguments, found)
    os.execv(sys.executable, [sys.executable, "-m", "snakemake", *arguments])


def targets(arguments: list[str]) -> list[str]:
    """What is asked for by name: neither an option, nor what follows one and may be its value."""
    return [
        word
        for before, word in pairwise(["", *arguments])
        if not word.startswith("-") and (not before.startswith("-") or before in FLAGS or COMPLETE.search(before))
    ]


def check_words(arguments: list[str]) -> None:
    """Refuse a misspelt command, of which Snakemake would say that no rule makes it."""
    for word in targets(arguments):
        if "/" in word or Path(word).exists() or (ROOT / word).exists() or word in rules():
            continue
        near = difflib.get_close_matches(word, [*COMMANDS, "test", *TABLES, *FIGURES], n=1, cutoff=0.7)
        if near and near[0] != word:
            raise InputError(f"{word} is neither a command nor a rule nor a file; did you mean {near[0]}?")


def check_profile(arguments: list[str]) -> None:
    """Refuse a profile that is not there: Snakemake runs without it, on this machine instead of the cluster."""
    for before, word in pairwise([part for argument in arguments for part in argument.split("=", 1)]):
        if before == "--workflow-profile" and word != "none" and not list(Path(word).glob("*.yaml")):
            raise InputError(f"--workflow-profile is {word}; allowed: a folder with a profile.yaml, or none")


def check_surroundings(arguments: list[str]) -> None:
    """Refuse variables and folders with which Snakemake would end in a traceback."""
    surroundings.device()
    surroundings.check_records(ROOT)
    if any(argument.partition("=")[0] == "--cache" for argument in arguments):
        surroundings.check_cache()


def check_paths(arguments: list[str], graph: Graph) -> None:
    """Refuse a result that no job makes."""
    for word in targets(arguments):
        path = os.path.normpath(word).removeprefix(f"{ROOT}/")
        if not path.startswith(f"{graph.results}/"):
            continue
        if path not in (known := paths(graph)) and not Path(path).exists():
            near = difflib.get_close_matches(path, known, n=1)
            raise InputError(
                f"{word} is nothing that this config makes; "
                + (f"did you mean {near[0]}?" if near else "./run -n lists what it makes")
            )


def rules() -> list[str]:
    """The names of the workflow's rules."""
    files = [ROOT / "Snakefile", *(ROOT / "workflow/rules").glob("*.smk")]
    named = [name for path in files for name in re.findall(r"^rule (\w+):", path.read_text(), flags=re.MULTILINE)]
    return [*named, *TABLES, *FIGURES]


def sorted_out(arguments: list[str]) -> tuple[list[str], list[str]]:
    """The arguments with config files as absolute paths, since Snakemake runs in the checkout; and these files.

    Without the suffix .yaml or .yml, what follows a config file is a target, which Snakemake would read as a config.
    """
    targets, found, files, after = [], [], [], 0  # `after`: how many arguments ago --configfile was, 0 when it is over
    for argument in arguments:
        name, equals, value = argument.partition("=")
        if name in ("--configfile", "--configfiles"):
            files += [str(Path(value).resolve())] if equals else []
            found.append(f"{name}={files[-1]}" if equals else argument)
            after = 0 if equals else 1
            continue
        after = 0 if argument.startswith("-") else after and after + 1
        if after == 2 or (after and Path(argument).suffix in (".yaml", ".yml")):
            files.append(str(Path(argument).resolve()))
            found.append(files[-1])
        else:
            (targets if after else found).append(argument)
    return targets + found, files


def graph(overlays: list[str]) -> Graph:
    """The graph of the default config with others laid over it; raises `InputError` for one that is wrong."""
    values = reduce(stack, map(read_yaml, overlays), {})
    return Graph(places.load(ROOT / "config/config.yaml", overlays, values))


# --- commands of our own ---------------------------------------------------------------------------------------------


def command(arguments: list[str]) -> None:
    """Read the command line of one of our commands and run it."""
    parser = argparse.ArgumentParser(prog="./run", description="Commands beside those of Snakemake.")
    parsers = parser.add_subparsers(dest="command", required=True)
    for name, (help_, options) in COMMANDS.items():
        each = parsers.add_parser(name, help=help_, description=help_)
        asks = name in ("search", "importance")
        if asks:
            each.add_argument("text", nargs="*", help="the words, in quotation marks or not")
        if name == "plan":
            each.add_argument("target", nargs="*", help="tables and figures such as table_stages; all without")
        for option, (meaning, kind) in options.items():
            form = {"action": "store_true"} if kind is bool else {"type": kind, "metavar": option.upper()}
            each.add_argument(f"--{option}", help=meaning, **form)
        each.add_argument("--configfile", nargs="+", action="extend", default=[], metavar="FILE", help="as for a run")
    given = parser.parse_args(arguments)
    if "text" in given:  # what follows config files may be the words
        configs = [word for word in given.configfile if Path(word).suffix in (".yaml", ".yml") or Path(word).is_file()]
        given.text += [word for word in given.configfile if word not in configs]
        given.configfile = configs
        if not given.text:
            parser.error(f"{given.command} needs words")
    if given.command == "plan":  # what follows config files may be a target
        given.target += [word for word in given.configfile if word in (*TABLES, *FIGURES)]
        given.configfile = [word for word in given.configfile if word not in given.target]
        for word in given.target:
            if word not in (*TABLES, *FIGURES):
                raise InputError(f"{word} is nothing to plan; {suggestion(word, (*TABLES, *FIGURES))}")
    overlays = [str(Path(path).resolve()) for path in given.configfile]
    os.chdir(ROOT)
    found = graph(overlays)
    {"plan": plan, "adopt": adopt_states, "search": search, "importance": importance}[given.command](found, given)


def plan(wanted: Graph, given: argparse.Namespace) -> None:
    """Tell what a run takes; earlier runs of the default config and of the same one tell how fast this machine is.

    Of a machine with other GPUs or more cores than this one they tell nothing.
    """
    from cdmae.planning import machine
    from cdmae.planning.plan import text
    from cdmae.planning.work import Planned

    here = machine.here()
    gpus = here.gpus or int(bool(given.gpu)) if given.gpus is None else given.gpus
    elsewhere = (given.cores or 0) > here.cores or given.gpus not in (None, here.gpus) or bool(given.gpu)
    memory = None if elsewhere else here.memory
    memory = memory if given.memory is None else given.memory * 2**30
    found = machine.Machine(here.cores if given.cores is None else given.cores, gpus, given.gpu or here.gpu, memory)
    planned = Planned(wanted, given.target)
    for each in () if elsewhere else (Planned(graph([])), planned):
        found = found.corrected(each, machine.records(each.graph.path("benchmarks")))
    print(text(planned, found, everything=given.all))


def adopt_states(graph: Graph, _: argparse.Namespace) -> None:
    """Move the newest older state of every training to where the code as it is now looks for one."""
    for line in adopt(Lineage(graph)) or ["there is no older training state to go on from"]:
        print(line)


def search(graph: Graph, given: argparse.Namespace) -> None:
    """Ask a retriever: the passages nearest to a text."""
    systems = graph.systems("retriever")
    if not systems:
        raise InputError(
            "the config trains no retriever that could be asked; give the --configfile of a run that trains one, or "
            "add a system of kind retriever"
        )
    system = chosen("system", given.system, systems, replicas.first(systems)[-1:])
    collection = chosen("collection", given.collection, graph.searched(system), graph.searched(system))
    become(
        "ask",
        {
            "system": system,
            "model": made(graph.trained(system)),
            "vectors": made(graph.vectors(system, collection), asked=not graph.config.evaluation.keep_vectors),
            "collection": graph.collection(collection),
            "text": " ".join(given.text),
            "depth": 5 if given.depth is None else given.depth,
        },
    )


def importance(graph: Graph, given: argparse.Namespace) -> None:
    """Shade a text by the importance of its words."""
    encoders = graph.masked_by_importance()
    if not encoders:
        raise InputError(
            "no encoder of the config is masked by importance, so that there is none; give the --configfile of a run "
            "that has one, or add an encoder with decoder_masking: importance"
        )
    encoder = chosen("encoder", given.encoder, encoders, encoders[-1:])
    tokenizer = graph.tokenizer(graph.config.encoders[encoder].start)
    become(
        "shade",
        {"table": made(graph.importance_of(encoder)), "tokenizer": made(tokenizer), "text": " ".join(given.text)},
    )


def chosen(what: str, name: str | None, allowed: list[str], default: list[str]) -> str:
    """A name of the config, or the first default."""
    if name is None and default:
        return default[0]
    if name not in allowed:
        raise InputError(f"--{what} is {name or 'missing'}; {suggestion(name or '', allowed)}")
    return name


def made(path: str, *, asked: bool = False) -> str:
    """A result that is there; `asked`: that a run makes only where one asks for it."""
    if not Path(path).exists():
        what = f"./run {path}" if asked else "./run"
        raise InputError(f"{path} is not made yet; {what} with the same config files makes it")
    return path


def become(script: str, options: dict[str, object]) -> None:
    """Run a script in the place of this process."""
    words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    os.execv(sys.executable, [sys.executable, f"workflow/scripts/{script}.py", *words])


COMMANDS = {
    "plan": (
        "tell what a run takes: jobs, hours, disk, memory",
        {
            "cores": ("processor cores; those of this machine without", int),
            "gpus": ("GPUs; those of this machine without, or one where there is none but its kind is given", int),
            "memory": ("its memory in GB; that of this machine without, unless another one is described", int),
            "gpu": ("their kind: h200, h100, a100, l40s, v100, rtx4090", str),
            "all": ("what is made already, too", bool),
        },
    ),
    "adopt": ("go on from the newest training states that an edit of the code has orphaned", {}),
    "search": (
        "ask a trained retriever",
        {
            "system": ("a retriever of the config; the last one without", str),
            "collection": ("the collection to search; the first one without", str),
            "depth": ("how many passages are shown; 5 without", int),
        },
    ),
    "importance": (
        "shade a text by the importance of its words",
        {"encoder": ("an encoder with importance-aware masks; the last one without", str)},
    ),
}


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except KeyboardInterrupt:
        sys.exit(130)  # 128 + SIGINT
    except BrokenPipeError:  # its reader, such as `head`, has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # or the interpreter complains while it ends
        sys.exit(128 + signal.SIGPIPE)
    except InputError as error:
        sys.exit(said(error))
