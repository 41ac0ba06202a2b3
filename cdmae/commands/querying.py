"""Commands that take a text: find its passages, and show the importance of its words."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from typing import Annotated

from typer import Argument, Option

from cdmae.commands.answering import askable, best_system, engine_of, importance_files
from cdmae.commands.configs import ConfigFiles, chosen, chosen_collection, configured
from cdmae.config import systems
from cdmae.errors import InputError

Words = Annotated[list[str], Argument(metavar="TEXT", show_default=False)]


def search(
    text: Words = (),
    configfile: ConfigFiles = (),
    system: Annotated[
        str | None, Option(help="a system of the config; default: the best one on dev")
    ] = None,
    collection: Annotated[
        str | None,
        Option(
            help="a collection of the evaluation; default: the first one without judgments, or "
            "else the first one that is not `source: pseudo`"
        ),
    ] = None,
    depth: Annotated[int, Option(help="number of passages, up to evaluation.depth")] = 5,
) -> None:
    """Print the passages that a system ranks highest for a query, and where they come from.

    The query is one or several words; quotation marks are optional. Under each title are the
    passage's id, such as its file, and its score.
    """
    config = configured(configfile)
    question = joined("search", text, "fit a polynomial to data points")
    most = config.evaluation.depth
    if not 1 <= depth <= most:
        raise InputError(
            f"--depth is {depth}; expected a whole number from 1 to {most} (evaluation.depth)"
        )
    asked = askable(config)
    collection = chosen_collection(config, collection)
    system = chosen("system", system, asked, [] if system else [best_system(config, asked)])
    engine = engine_of(config, [system], [collection], keep=False)
    hits = engine.search(question, system, collection, depth).hits

    from cdmae.serving.answers import show

    source = config.collections[collection].settings
    path = getattr(source, "path", "")
    of = f"{engine.passages(collection):,} passages{f' of {path}' if path else ''}"
    print(f"{system} on {collection}, {of}:\n", file=sys.stderr)
    width = min(shutil.get_terminal_size((100, 24)).columns, 100)
    print(show(hits, width))


def importance(
    text: Words = (),
    configfile: ConfigFiles = (),
    encoder: Annotated[
        str | None,
        Option(help="the encoder whose importance is read; default: the last that masks by it"),
    ] = None,
) -> None:
    """Shade a text by the importance of its words.

    The text is one or several words; quotation marks are optional. Importance is in nats. An
    n-gram that the collection does not repeat counts as seen once, which makes its words look
    important.
    """
    config = configured(configfile)
    whole = joined("importance", text, "return the number of dimensions of the input array")
    encoders = systems.masked_by_importance(config)
    if not encoders:
        raise InputError(
            "no encoder of the config has importance-aware masks; "
            "pass the --configfile of a run that has one, "
            "or add an encoder with decoder_masking: importance"
        )
    encoder = chosen("encoder", encoder, encoders, encoders[-1:])
    table, tokenizer = importance_files(config, encoder)

    from cdmae.importance import shading

    words = shading.Shades(table, tokenizer).words(whole)
    print(shading.for_terminal(words) if coloured() else shading.as_numbers(words))


def joined(name: str, words: Sequence[str], example: str) -> str:
    """Join the words of a command into one text."""
    text = " ".join(words)
    if not text.strip():
        raise InputError(f'{name} needs a text, for example ./run {name} "{example}"')
    return text


def coloured() -> bool:
    """Return whether standard output supports colours."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")
