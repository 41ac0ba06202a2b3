"""The command that estimates a run before it begins."""

from __future__ import annotations

from typing import Annotated

from typer import Option

from cdmae.commands.configs import ConfigFiles, configured
from cdmae.errors import InputError
from cdmae.plan.machine import PEAK


def plan(
    configfile: ConfigFiles = (),
    config: Annotated[list[str], Option(help="values as for a run, such as seed=42")] = (),
    gpus: Annotated[
        int | None, Option(min=0, help="GPUs of another machine; 1 if only --gpu is given")
    ] = None,
    gpu: Annotated[str, Option(help=f"the kind of these GPUs: {', '.join(PEAK)}")] = "",
) -> None:
    """Estimate the operations of a run's networks, their time, GPU-hours, and disk.

    The estimate is for the whole run, including results that exist already, and for this machine
    unless --gpus or --gpu describes another one.
    """
    from snakemake.cli import parse_config

    from cdmae.plan import machine
    from cdmae.plan.plan import Plan, text

    try:
        values = parse_config(config)
    except ValueError as error:
        raise InputError(f"--config: {error}") from None
    here = machine.here()
    described = machine.Machine(
        cores=here.cores,
        gpus=here.gpus or int(bool(gpu)) if gpus is None else gpus,
        gpu=gpu or here.gpu,
    )
    print(text(Plan(configured(configfile, values)), described))
