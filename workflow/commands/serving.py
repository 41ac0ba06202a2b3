"""The command that serves a page: search, and judgments of what it finds."""

from __future__ import annotations

import getpass
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from cdmae.config import systems
from cdmae.config.schema import Config
from cdmae.errors import InputError
from cdmae.formats import memory, plural
from cdmae.layout import place
from cdmae.log import say
from workflow.commands.answering import askable, best_system, described, importance_files
from workflow.commands.configs import chosen, configured

if TYPE_CHECKING:
    from cdmae.serving.engine import Engine
    from cdmae.serving.judging_page import Judging


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
    best = best_system(config, names)
    shading = systems.masked_by_importance(config)
    about = {
        collection: {name: described(config, name, collection) for name in names}
        for collection in config.evaluation.collections
    }
    folders = {name: Path(place(config.results, "collection", collection=name)) for name in about}

    from cdmae.collections.store import judged_queries
    from cdmae.plan import machine
    from cdmae.serving import server
    from cdmae.serving.engine import Engine

    summaries = {
        name: judged_queries(folder)
        for name, folder in folders.items()
        if config.collections[name].settings.queries_are_cut
    }
    engine = Engine(
        about,
        folders,
        depth=config.evaluation.depth,
        lengths=config.evaluation.lengths,
        summaries=summaries,
        shades=importance_files(config, shading[-1]) if shading else None,
    )
    say(f"loading {plural(len(names), 'system')}: about {memory(engine.memory() / 1e6)} of memory")
    engine.warm()
    judging = judging_of(config, engine, folder, collection, texts) if judge else None
    app = server.make(
        engine,
        title=config.report.title or "Search",
        system=best,
        host=host,
        threads=machine.here().cores,
        judging=judging,
    )
    server.run(app, host, port, started=lambda url: say(f"open {url} in a browser; Ctrl-C ends it"))


def judging_of(
    config: Config, engine: Engine, folder: Path, collection: str | None, queries: list[str]
) -> Judging:
    """Open the folder of judgments, and add queries to it."""
    from cdmae.collections.store import stream_passages
    from cdmae.serving.judging import DEPTH, Judgments, Passage
    from cdmae.serving.judging_page import Judging

    known = list(config.evaluation.collections)
    collection = chosen("collection", collection, known, systems.only_searched(config) or known)

    def corpus() -> Iterator[dict[str, str]]:
        for passages in stream_passages(engine.folders[collection]):
            yield from passages.to_pylist()

    def pool(text: str) -> list[Passage]:
        hits = engine.pool(text, collection, DEPTH)
        return [Passage(hit.passage_id, hit.title, hit.text) for hit in hits]

    judgments = Judgments(folder, corpus(), pool, list(engine.systems[collection]))
    for text in queries:
        judgments.add(text)
    return Judging(judgments, collection, getpass.getuser())
