"""The command that estimates a run before it begins."""

from __future__ import annotations

from typing import Any

from cdmae.config.reading import check_typed
from cdmae.errors import InputError
from workflow.commands.configs import configured


def plan(
    *,
    configfile: list[str] = (),  # type: ignore[assignment]
    config: list[str] = (),  # type: ignore[assignment]
    cores: int | None = None,
    gpus: int | None = None,
    gpu: str = "",
) -> None:
    """Estimate the operations of a run's networks, their time, GPU-hours, and disk.

    Results that exist do not count. The default is this machine; options describe another one:

      --cores       processor cores
      --gpus        GPUs; default on a machine without GPUs: 1 with --gpu, otherwise 0
      --gpu         kind of the GPUs: h200, h100, a100, l40s, v100, rtx4090, t4
      --configfile  config files as for a run, which overlay config/config.yaml
      --config      values as for a run, such as 'seeds=[]'

    Examples:
      ./run plan
      ./run plan --configfile config/paper.yaml --gpus 8 --gpu h200
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
    check_typed(config)
    return values
