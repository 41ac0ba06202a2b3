"""The command that serves a page for searching, and for judging the passages found."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import yaml
from typer import Option

from cdmae.commands.answering import askable, best_system, engine_of, importance_files
from cdmae.commands.configs import ConfigFiles, chosen, chosen_collection, configured
from cdmae.config import systems
from cdmae.config.schema import Config
from cdmae.errors import InputError
from cdmae.files import write_text
from cdmae.formats import listed, plural
from cdmae.log import say
from cdmae.serving.judging import DEPTH

if TYPE_CHECKING:
    from cdmae.serving.engine import Engine
    from cdmae.serving.judging import Judgments, Passage

JUDGED = "Judged@10"  # the share of a system's best ten passages that have a grade


def serve(
    configfile: ConfigFiles = (),
    system: Annotated[
        str,
        Option(help="names separated by commas; default: all that can answer queries"),
    ] = "",
    port: Annotated[
        int, Option(min=0, max=65535, help="the port to listen on, or 0 for any free one")
    ] = 8000,
    judge: Annotated[
        str,
        Option(
            help="a folder for judgments: adds a page for grading the systems' best passages. "
            "`source: queries` reads the folder at any time"
        ),
    ] = "",
    collection: Annotated[
        str | None,
        Option(help="the collection to judge; default: as for ./run search"),
    ] = None,
    queries: Annotated[
        str,
        Option(help="a file of queries to judge, one per line; more can be typed on the page"),
    ] = "",
    depth: Annotated[
        int, Option(min=1, help="the number of each system's best passages to judge")
    ] = DEPTH,
) -> None:
    """Serve a page that answers queries with the systems of a finished run, on this machine.

    Models and indexes stay in memory. The page compares up to three systems; /search answers in
    JSON, which /openapi.json describes. Ctrl-C ends the server.
    """
    from cdmae.serving.judging import read_queries

    if (collection or queries or depth != DEPTH) and not judge:
        raise InputError(
            "--collection, --queries and --depth choose what is judged; add --judge FOLDER"
        )
    folder = Path(judge).expanduser().resolve()  # before the working directory changes
    texts = read_queries(Path(queries).expanduser().resolve()) if queries else []
    config = configured(configfile)
    asked = askable(config)
    names = [chosen("system", name, asked, []) for name in system.split(",") if name]
    names = names or asked
    judged = chosen_collection(config, collection)
    best = best_system(config, names)
    first = chosen_collection(config, None)
    collections = list(dict.fromkeys([first, *config.evaluation.collections]))
    engine = engine_of(config, names, collections)

    from cdmae.importance.shading import Shades
    from cdmae.plan import machine
    from cdmae.serving import server

    shading = systems.masked_by_importance(config)
    if shading:
        engine.shades = Shades(*importance_files(config, shading[-1]))
    bound = server.listen(port)
    say(f"loading {plural(len(names), 'system')}")
    engine.warm()
    if judge:
        say(f"pooling the best {depth} passages of {listed(names)}")
    app = server.make(
        engine,
        title=config.report.title or "Search",
        best=best,
        threads=machine.here().cores,
        judging=judging_of(config, engine, folder, judged, texts, names, depth) if judge else None,
    )
    url = f"http://{server.HOST}:{bound.getsockname()[1]}/"
    say(f"open {url}{'judge' if judge else ''} in a browser; Ctrl-C ends the server")
    server.run(app, bound)
    say("the server has ended")


def judging_of(
    config: Config,
    engine: Engine,
    folder: Path,
    collection: str,
    queries: list[str],
    pooled: list[str],
    depth: int,
) -> Judgments:
    """Open the folder of judgments, and add queries to it; the user's name goes into the grades.

    pooled: the systems whose best `depth` passages are judged.
    """
    from cdmae.serving.judging import SPLIT, Judgments, Passage

    def pool(text: str) -> list[Passage]:
        hits = engine.pool(text, collection, pooled, depth)
        return [Passage(hit.passage_id, hit.title, hit.text) for hit in hits]

    judgments = Judgments(
        folder,
        pool,
        [f"{name}:{depth}" for name in pooled],
        collection=collection,
        passages=engine.passages(collection),
        who=os.environ.get("USER") or f"user {os.getuid()}",
    )
    name = f"{collection[:57]}-judged"  # a name has up to 64 letters
    evaluation = {"collections": {name: [SPLIT]}, "measures": [*config.evaluation.measures]}
    if JUDGED not in evaluation["measures"]:
        evaluation["measures"].append(JUDGED)
    if collection in config.evaluation.lengths:
        evaluation["lengths"] = {name: config.evaluation.lengths[collection]}
    source = {"source": "queries", "of": collection, "path": str(folder)}
    overlay = {"collections": {name: source}, "evaluation": evaluation}
    if not (folder / "evaluation.yaml").exists():  # the user may have changed it
        write_text(folder / "evaluation.yaml", yaml.safe_dump(overlay, sort_keys=False))
    judgments.add(queries)
    return judgments
