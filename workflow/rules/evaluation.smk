# Measures per query, the models with their cards, and the page at the end.

import platform
from datetime import datetime
from importlib.metadata import version

from cdmae.plan.describe import describe


def card_facts(wildcards):
    """Write what the card of a model tells as JSON."""
    return json.dumps(card(settings, wildcards.system), sort_keys=True)


def card_sources(wildcards):
    """Name the files that tell what the collections of a model were made from."""
    return list(card(settings, wildcards.system)["about"].values())


rule measures:
    """Every measure of every query of a system."""
    input:
        queries=of_system("<results>/collections/{collection}/queries.parquet"),
        qrels=of_system("<results>/collections/{collection}/qrels.parquet"),
        runs=expand("<results>/runs/{system}/{target}.parquet", target=TARGETS, allow_missing=True),
    output:
        "<results>/measures/{system}.tsv",
    log:
        "<logs>/measures/{system}.log",
    benchmark:
        "<benchmarks>/measures/{system}.tsv"
    conda:
        environment
    resources:
        mem_mb=16000,
        runtime=60,
    params:
        *code("measures"),
        names=per_target("{collection}"),
        collections=per_target("<results>/collections/{collection}"),
        splits=per_target("{split}"),
        measures=per_target("{measures}"),
    shell:
        "python workflow/scripts/measures.py --system {wildcards.system:q} --names {params.names:q}"
        " --collections {params.collections:q} --splits {params.splits:q} --runs {input.runs:q}"
        " --measures {params.measures:q} --output {output:q} 2>&1 | tee -i {log:q} >&2"


rule release:
    """A trained model with its card, as others load it."""
    input:
        model="<results>/trained/{system}",
        measures="<results>/measures/{system}.tsv",
        about=card_sources,
        template="cdmae/report/templates/card.md.j2",
    output:
        directory("<results>/models/{system}"),
    log:
        "<logs>/release/{system}.log",
    benchmark:
        "<benchmarks>/release/{system}.tsv"
    wildcard_constraints:
        system=of_kind(*TRAINED),
    conda:
        environment
    resources:
        mem_mb=4000,
        runtime=30,
    params:
        *code("release"),
        facts=card_facts,
    shell:
        "python workflow/scripts/release.py --model {input.model:q} --measures {input.measures:q}"
        " --facts {params.facts:q} --output {output:q} 2>&1 | tee -i {log:q} >&2"


versions = {"python": platform.python_version()} | {
    name: version(name) for name in ("torch", "transformers", "sentence-transformers", "pyserini", "snakemake")
}
circumstances = {
    "versions": versions,
    "machine": describe(),
    "started": datetime.now().astimezone().isoformat(sep=" ", timespec="minutes"),
}


# words, style and tables of claims and exhibits: files that the code's fingerprint does not follow
templates = sorted(str(path) for path in Path("cdmae/report").rglob("*.*") if path.suffix in (".j2", ".css", ".csv"))
EXHIBITED = ("measures", "masked_terms", "encoders")
REPORTED = (*EXHIBITED, "trained", "importance", "teachers", "runs")
report_sources = facts(settings)


def results_of(sources, parts=REPORTED):
    """List the paths of some parts of what a page is made from."""
    return {part: list(sources[part].values()) for part in parts}


def abouts_of(sources):
    """Name the files that tell what the collections of a page were made from."""
    return expand("<results>/collections/{collection}/about.json", collection=sources["collections"])


def report_settings(wildcards):
    """Write what the report is made from as JSON: the reason to make it again."""
    return json.dumps(report_sources, sort_keys=True)


def report_facts(wildcards, output):
    """Write the same with the circumstances, which are no reason to make it again."""
    return json.dumps({**report_sources, **circumstances})


rule report:
    """Tables, figures and one page that opens offline."""
    input:
        **results_of(report_sources),
        mined=sorted(set(report_sources["mined"].values())),
        collections=abouts_of(report_sources),
        published="config/paper_results.csv",
        templates=templates,
    output:
        page=report(
            "<results>/report/index.html",
            caption="../report/page.rst",
            category="Report",
            labels={"page": "the whole report"},
        ),
        tables=report(
            directory("<results>/report/tables"),
            patterns=["{name}.html"],
            caption="../report/tables.rst",
            category="Tables",
            labels={"table": "{name}"},
        ),
        figures=report(
            directory("<results>/report/figures"),
            patterns=["{name}.svg"],
            caption="../report/figures.rst",
            category="Figures",
            labels={"figure": "{name}"},
        ),
        facts="<results>/facts.json",
    log:
        "<logs>/report.log",
    benchmark:
        "<benchmarks>/report.tsv"
    conda:
        environment
    resources:
        mem_mb=16000,  # the runs over half a million training queries
        runtime=60,
    params:
        *code("report"),
        settings=report_settings,
        facts=report_facts,
        folder=subpath(output.page, parent=True),
    shell:
        "printf '%s' {params.facts:q} >{output.facts:q};"
        " python workflow/scripts/report.py --facts {output.facts:q} --output {params.folder:q}"
        " 2>&1 | tee -i {log:q} >&2"


# --- the paper's tables and figures, on request: ./run table_stages, ./run figure_negatives -------------------------


def exhibit_inputs(wildcards):
    """List what a table or figure is made from."""
    sources = exhibit(settings, wildcards.exhibit)
    latency = [sources["latency"]] if sources["latency"] else []
    return sum(results_of(sources, EXHIBITED).values(), latency + abouts_of(sources))


def exhibit_facts(wildcards):
    """Write the same by name as JSON."""
    return json.dumps(exhibit(settings, wildcards.exhibit), sort_keys=True)


rule latency:
    """Milliseconds of masking a batch as each method does it: for table_latency."""
    output:
        "<results>/latency.json",
    log:
        "<logs>/latency.log",
    benchmark:
        "<benchmarks>/latency.tsv"
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
        exhibit_inputs,
        published="config/paper_results.csv",
        templates=templates,
    output:
        multiext("<results>/tables/{exhibit}", ".csv", ".md", ".tex", ".html"),
    log:
        "<logs>/table/{exhibit}.log",
    wildcard_constraints:
        exhibit=only(TABLES),
    conda:
        environment
    resources:
        mem_mb=8000,
        runtime=60,
    params:
        *code("table"),
        facts=exhibit_facts,
        folder=subpath(output[0], parent=True),
    shell:
        "python workflow/scripts/table.py --name {wildcards.exhibit} --facts <(printf '%s' {params.facts:q})"
        " --output {params.folder:q} 2>&1 | tee -i {log:q} >&2"


rule figure:
    """A figure of the paper with our numbers beside its own."""
    input:
        exhibit_inputs,
        published="config/paper_results.csv",
        templates=templates,
    output:
        multiext("<results>/tables/{exhibit}", ".svg", ".csv"),
    log:
        "<logs>/figure/{exhibit}.log",
    wildcard_constraints:
        exhibit=only(FIGURES),
    conda:
        environment
    resources:
        mem_mb=8000,
        runtime=60,
    params:
        *code("figure"),
        facts=exhibit_facts,
        folder=subpath(output[0], parent=True),
    shell:
        "python workflow/scripts/figure.py --name {wildcards.exhibit} --facts <(printf '%s' {params.facts:q})"
        " --output {params.folder:q} 2>&1 | tee -i {log:q} >&2"


for exhibit_name in (*TABLES, *FIGURES):

    rule:
        name:
            exhibit_name
        input:
            f"<results>/tables/{exhibit_name}.csv",
