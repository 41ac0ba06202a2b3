"""The command that estimates a run before it begins."""

from __future__ import annotations

from typing import Annotated, Any

from typer import Option

from cdmae.commands.configs import ConfigFiles, configured
from cdmae.errors import InputError
from cdmae.plan.machine import PEAK


def plan(
    configfile: ConfigFiles = (),
    config: Annotated[list[str], Option(help="values as for a run, such as seed=42")] = (),
    cores: Annotated[int | None, Option(min=1, help="processor cores of another machine")] = None,
    gpus: Annotated[int | None, Option(min=0, help="its GPUs; 1 if only --gpu is given")] = None,
    gpu: Annotated[str, Option(help=f"their kind: {', '.join(PEAK)}")] = "",
) -> None:
    """Estimate the operations of a run's networks, their time, GPU-hours, and disk.

    Results that exist do not count. Without --cores, --gpus and --gpu, it is for this machine.
    """
    from cdmae.plan import machine
    from cdmae.plan.plan import Plan, text

    here = machine.here()
    described = machine.Machine(
        cores=here.cores if cores is None else cores,
        gpus=here.gpus or int(bool(gpu)) if gpus is None else gpus,
        gpu=gpu or here.gpu,
    )
    print(text(Plan(configured(configfile, values_of(config))), described))


def values_of(config: list[str]) -> dict[str, Any]:
    """Read the values of ``--config`` in the same way as Snakemake."""
    if not config:
        return {}  # quickly, without Snakemake
    from snakemake import cli
    from snakemake.exceptions import CliException

    try:
        values = cli.parse_config(config)
    except (CliException, ValueError) as error:
        raise InputError(f"{error}; ./run plan --help lists the options") from None
    return values
