"""The command that compares a finished run with published numbers."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from typer import Option

from cdmae.commands.configs import ROOT, ConfigFiles, configured, existing
from cdmae.config import seeds, systems
from cdmae.errors import InputError
from cdmae.formats import plural
from cdmae.layout import place


def check(
    configfile: ConfigFiles = (),
    write: Annotated[
        bool,
        Option(
            "--write",
            help="write the run's numbers into config/expected.yaml, and print them in Markdown",
        ),
    ] = False,
) -> None:
    """Compare a finished run with the numbers of the README, which config/expected.yaml lists.

    A number is [OK] if it is equal as shown, and [OKish] if another seed may cause the difference.
    Otherwise it is [FAIL], and the exit status is 1. Tables made by other config files or seeds are
    omitted.
    """
    from cdmae.evaluation import expected
    from cdmae.evaluation.per_query import read_measures

    names = [os.path.relpath(Path(file).resolve(), ROOT) for file in configfile]
    config = configured(configfile)
    path = ROOT / "config/expected.yaml"
    tables = expected.read(path)
    chosen_tables = expected.made_by(tables, names, config.seed)
    if not chosen_tables:
        raise InputError(
            f"{path} has no table for these config files and seeds; its tables name theirs under "
            "configfile and seeds"
        )

    def values(system: str, collection: str, split: str, measure: str) -> list[Any]:
        replicas = [name for name in config.systems if seeds.base(name) == system]
        if not replicas:
            raise InputError(
                f"{path} names the system {system}, which the config lacks; correct one of them"
            )
        files = [existing(place(config.results, "measures", system=name)) for name in replicas]
        return expected.of_system(
            [read_measures(file) for file in files], measure, collection, split
        )

    failed = 0
    for index in chosen_tables:
        table = tables[index]
        read_values = partial(values, measure=table.measure)
        found = expected.measured(table, read_values, partial(systems.learns, config))
        if write:
            tables[index] = found
            print(f"{table.title}\n\n{expected.markdown(found)}\n")
            continue
        verdicts = expected.compare(table, found)
        failed += sum(verdict.word == "FAIL" for verdict in verdicts)
        print("\n".join([table.title, *map(str, verdicts), ""]))
    if write:
        expected.write(path, tables)
    if failed:
        raise InputError(f"{plural(failed, 'number')} of the README differ by more than the noise")
