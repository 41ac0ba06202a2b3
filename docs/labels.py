"""Draw ``docs/labels.svg`` from ``config/expected.csv``: run ``make figure``."""

from pathlib import Path

import matplotlib as mpl
import pandas as pd

mpl.use("svg")
import matplotlib.pyplot as plt  # noqa: E402 (after the choice of a backend)

DOCS = Path(__file__).parent
SUFFIX = " by training queries"  # of the tables that are drawn, a panel each
STYLE = {"font.size": 9, "svg.fonttype": "none", "svg.hashsalt": "cdmae", "legend.frameon": False}


def draw(path: Path) -> None:
    """Draw MRR@10 by the number of training queries, with a line per pre-training."""
    numbers = pd.read_csv(DOCS.parent / "config/expected.csv", keep_default_na=False)
    numbers = numbers[numbers["table"].str.endswith(SUFFIX) & (numbers["minus"] == "")]
    tables = numbers.groupby("table", sort=False)
    with plt.rc_context(STYLE):
        figure, panels = plt.subplots(1, len(tables), figsize=(9.5, 3.2), layout="constrained")
        for axes, (title, table) in zip(panels, tables, strict=True):
            for at, (label, line) in enumerate(table.groupby("label", sort=False)):
                labels = line["column"].str.replace(",", "").astype(int)
                axes.plot(labels, line["value"], "os^D"[at % 4], ls="-", ms=4, label=label)
            axes.set_title(title.removesuffix(SUFFIX))
            axes.set_xlabel("training queries")
            axes.set_xscale("log")
            axes.set_xticks(labels, line["column"])
            axes.minorticks_off()
            axes.set_ylim(bottom=0)
            axes.spines[["top", "right"]].set_visible(False)
        panels[0].set_ylabel("MRR@10 x 100")
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=2)
        figure.savefig(path, metadata={"Date": None, "Creator": None})
        plt.close(figure)


if __name__ == "__main__":
    draw(DOCS / "labels.svg")
