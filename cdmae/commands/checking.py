"""The command that compares a finished run with published numbers."""

from __future__ import annotations

import difflib
import os
from functools import partial
from pathlib import Path
from typing import Annotated

from typer import Option

from cdmae.commands.configs import ROOT, ConfigFiles, configured, existing
from cdmae.config import systems
from cdmae.errors import InputError
from cdmae.formats import listed, plural
from cdmae.layout import place

DEFAULT = "no config file"


def check(
    configfile: ConfigFiles = (),
    write: Annotated[
        bool,
        Option("--write", help="write the run's numbers into config/expected.csv"),
    ] = False,
) -> None:
    """Compare a finished run with the numbers of the README, which config/expected.csv lists.

    A number is [OK] if it is equal as shown, and [OKish] if another seed may cause the difference.
    Otherwise it is [FAIL], and the exit status is 1. Tables made by other config files or seeds are
    omitted.
    """
    from cdmae.evaluation import expected
    from cdmae.report import frames

    names = [os.path.relpath(Path(file).resolve(), ROOT) for file in configfile]
    config = configured(configfile)
    path = ROOT / "config/expected.csv"
    numbers = expected.read(path)
    known = numbers["configfile"].replace("", DEFAULT) + " (seed " + numbers["seeds"] + ")"
    run = f"{' '.join(names) or DEFAULT} (seed {' '.join(map(str, config.seed))})"
    own = known == run
    if not own.any():
        near = difflib.get_close_matches(run, known.unique(), cutoff=0)
        raise InputError(f"{path} has no table for {run}; the nearest are for {listed(near)}")
    results = frames.read_results(existing(place(config.results, "report")))
    learns = partial(systems.learns, config)
    found = expected.measured(numbers[own], results, learns)
    if write:
        numbers[own] = found
        numbers.to_csv(path, index=False, float_format=f"%.{expected.DIGITS}f")
        return
    words = expected.verdicts(numbers[own], found)
    for title, table in found.groupby("table", sort=False):
        print(title)
        for at, row in table.iterrows():
            wanted, noise = numbers.loc[at, ["value", "noise"]]
            apart = row["value"] - wanted
            print(
                f"{f'[{words[at]}]':8}{row['label']}, {row['column']}: {row['value']:.1f}, "
                f"expected {wanted:.1f} ({apart:+.1f}, noise {noise:.1f})"
            )
        print()
    failed = int((words == "FAIL").sum())
    if failed:
        raise InputError(f"{plural(failed, 'number')} of the README differ by more than the noise")
