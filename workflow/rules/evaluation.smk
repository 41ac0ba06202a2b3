# Measures per query, the models with their cards, and the page at the end.

import platform
from datetime import datetime
from importlib.metadata import version

from cdmae import machine


rule measures:
    """Every measure of every query of a system."""
    input:
        unpack(inputs("measures")),
    output:
        graph.measures("{system}"),
    log:
        graph.path("logs/measures/{system}.log"),
    benchmark:
        graph.path("benchmarks/measures/{system}.tsv")
    conda:
        environment
    resources:
        mem_mb=16000,
        runtime=60,
    params:
        *code("measures"),
        names=setting("measures", "names"),
        collections=targets(lambda system, collection: graph.collection(collection)),
        splits=setting("measures", "splits"),
        measures=setting("measures", "measures"),
    shell:
        "python workflow/scripts/measures.py --system {wildcards.system:q} --names {params.names:q}"
        " --collections {params.collections:q} --splits {params.splits:q} --runs {input.runs:q}"
        " --measures {params.measures:q} --output {output:q} 2>&1 | tee -i {log:q} >&2"


rule release:
    """A trained model with its card, as others load it."""
    input:
        unpack(inputs("release")),
    output:
        directory(graph.model("{system}")),
    log:
        graph.path("logs/release/{system}.log"),
    benchmark:
        graph.path("benchmarks/release/{system}.tsv")
    wildcard_constraints:
        system=only(graph.systems(*TRAINED)),
    conda:
        environment
    resources:
        mem_mb=4000,
        runtime=30,
    params:
        *code("release"),
        facts=setting("release", "facts"),
    shell:
        "python workflow/scripts/release.py --model {input.model:q} --measures {input.measures:q}"
        " --facts {params.facts:q} --output {output:q} 2>&1 | tee -i {log:q} >&2"


versions = {"python": platform.python_version()} | {
    name: version(name) for name in ("torch", "transformers", "sentence-transformers", "pyserini", "snakemake")
}
circumstances = {
    "versions": versions,
    "machine": machine.describe(),
    "started": datetime.now().astimezone().isoformat(sep=" ", timespec="minutes"),
}


# the words and the style of pages and tables: files that the code's fingerprint does not follow
templates = sorted(str(path) for path in Path("cdmae/report").rglob("*.*") if path.suffix in (".j2", ".css"))


rule report:
    """Tables, figures and one page that opens offline."""
    input:
        unpack(inputs("report")),
        published="config/paper_results.csv",
        templates=templates,
    output:
        page=report(
            graph.page(),
            caption="../report/page.rst",
            category="Report",
            labels={"page": "the whole report"},
        ),
        tables=report(
            directory(f"{graph.report()}/tables"),
            patterns=["{name}.html"],
            caption="../report/tables.rst",
            category="Tables",
            labels={"table": "{name}"},
        ),
        figures=report(
            directory(f"{graph.report()}/figures"),
            patterns=["{name}.svg"],
            caption="../report/figures.rst",
            category="Figures",
            labels={"figure": "{name}"},
        ),
        facts=graph.path("facts.json"),
    log:
        graph.path("logs/report.log"),
    benchmark:
        graph.path("benchmarks/report.tsv")
    conda:
        environment
    resources:
        mem_mb=16000,  # the runs over half a million training queries
        runtime=60,
    params:
        *code("report"),
        settings=setting("report", "facts"),
        facts=lambda wildcards, output: json.dumps({**graph.facts(), **circumstances}),
        folder=lambda wildcards, output: dirname(output.page),
    shell:
        "printf '%s' {params.facts:q} >{output.facts:q};"
        " python workflow/scripts/report.py --facts {output.facts:q} --output {params.folder:q}"
        " 2>&1 | tee -i {log:q} >&2"


# --- the paper's tables and figures, on request: ./run table_stages, ./run figure_negatives -------------------------


rule latency:
    """Milliseconds of masking a batch as each method does it: for table_latency."""
    output:
        graph.latency(),
    log:
        graph.path("logs/latency.log"),
    benchmark:
        graph.path("benchmarks/latency.tsv")
    conda:
        environment
    resources:
        mem_mb=8000,
        runtime=30,
    params:
        *code("latency"),
    shell:
        "python workflow/scripts/latency.py --output {output:q} 2>&1 | tee -i {log:q} >&2"


rule table:
    """A table of the paper with our numbers beside its own."""
    input:
        unpack(inputs("table")),
        published="config/paper_results.csv",
        templates=templates,
    output:
        multiext(f"{graph.exhibits()}/{{exhibit}}", ".csv", ".md", ".tex", ".html"),
    log:
        graph.path("logs/table/{exhibit}.log"),
    wildcard_constraints:
        exhibit=only(TABLES),
    conda:
        environment
    resources:
        mem_mb=8000,
        runtime=60,
    params:
        *code("table"),
        facts=setting("table", "facts"),
        folder=graph.exhibits(),
    shell:
        "python workflow/scripts/table.py --name {wildcards.exhibit} --facts <(printf '%s' {params.facts:q})"
        " --output {params.folder:q} 2>&1 | tee -i {log:q} >&2"


rule figure:
    """A figure of the paper with our numbers beside its own."""
    input:
        unpack(inputs("figure")),
        published="config/paper_results.csv",
        templates=templates,
    output:
        multiext(f"{graph.exhibits()}/{{exhibit}}", ".svg", ".csv"),
    log:
        graph.path("logs/figure/{exhibit}.log"),
    wildcard_constraints:
        exhibit=only(FIGURES),
    conda:
        environment
    resources:
        mem_mb=8000,
        runtime=60,
    params:
        *code("figure"),
        facts=setting("figure", "facts"),
        folder=graph.exhibits(),
    shell:
        "python workflow/scripts/figure.py --name {wildcards.exhibit} --facts <(printf '%s' {params.facts:q})"
        " --output {params.folder:q} 2>&1 | tee -i {log:q} >&2"


for each in (*TABLES, *FIGURES):

    rule:
        name:
            each
        input:
            f"{graph.exhibits()}/{each}.csv",
