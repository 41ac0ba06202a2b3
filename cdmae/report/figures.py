"""The old place of what sections import from `cdmae.report.charts`."""

from cdmae.report.charts import Figure, nice

__all__ = ["Figure", "nice"]
