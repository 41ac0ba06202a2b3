"""The command that serves a page for searching, and for judging the passages found."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

from typer import Option

from cdmae.commands.answering import (
    askable,
    best_system,
    cut_queries,
    described,
    importance_files,
)
from cdmae.commands.configs import (
    ConfigFiles,
    chosen,
    chosen_collection,
    configured,
    existing,
)
from cdmae.config import seeds, systems
from cdmae.errors import InputError
from cdmae.formats import memory as formatted
from cdmae.formats import plural
from cdmae.layout import place
from cdmae.log import say


def serve(
    configfile: ConfigFiles = (),
    system: Annotated[
        str,
        Option(help="names between commas; default: all that can answer queries"),
    ] = "",
    host: Annotated[
        str, Option(help="the address to listen on; 127.0.0.1 can only be reached by this machine")
    ] = "127.0.0.1",
    port: Annotated[
        int, Option(min=0, max=65535, help="the port to listen on, or 0 for any free one")
    ] = 8000,
    judge: Annotated[
        str,
        Option(
            help="a folder for judgments: adds a page that grades the pooled best ten passages of "
            "the systems. The folder is a collection for `source: beir` at any time"
        ),
    ] = "",
    collection: Annotated[
        str | None,
        Option(help="the collection to judge; default: one without judgments, else the first"),
    ] = None,
    queries: Annotated[
        str,
        Option(help="a file of queries to judge, one per line; more can be typed on the page"),
    ] = "",
) -> None:
    """Serve a page that answers queries with the systems of a finished run.

    Models and indexes stay in memory. The page compares up to three systems; /search answers in
    JSON, which /docs describes. Ctrl-C ends the server.
    """
    from cdmae.serving.judging import read_queries

    if (collection or queries) and not judge:
        raise InputError("--collection and --queries choose what is judged; add --judge FOLDER")
    folder = Path(judge).resolve()  # before the working directory changes
    texts = read_queries(Path(queries).resolve()) if queries else []
    config = configured(configfile)
    asked = askable(config)
    names = [chosen("system", name, asked, []) for name in system.split(",") if name]
    names = names or seeds.first(asked)  # the vectors of further seeds are not kept
    judged = chosen_collection(config, collection) if judge else ""
    best = best_system(config, names)
    shading = systems.masked_by_importance(config)
    first = chosen_collection(config, None)
    about = {
        collection: {name: described(config, name, collection) for name in names}
        for collection in dict.fromkeys([first, *config.evaluation.collections])
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
    from cdmae.commands.judgments import judging_of

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
