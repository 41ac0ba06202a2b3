# Measures per query, the models with their cards, and the page at the end.

from cdmae.files import write_json

cards = {name: card(settings, name) for name in systems.trained(settings)}
for name, facts_of_card in cards.items():
    tables["system"][name]["described"] = list(facts_of_card["about"])
    tables["system"][name]["bm25"] = systems.of_kind(settings, "bm25")[:1]


rule measures:
    """Every measure of every query of a system."""
    input:
        queries=of("<results>/collections/{job.collection}/queries.parquet"),
        qrels=of("<results>/collections/{job.collection}/qrels.parquet"),
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
        mem_mb=memory_of("measures"),
        runtime=minutes_of("measures"),
    params:
        code=code("measures"),
        settings=measuring,
        launch=launch,
        collections=folders("queries"),
        needed=needed_of_all,
    shell:
        "{params.launch} scripts/measures.py --system {wildcards.system:q} --runs {input.runs:q}"
        " --collections {params.collections:q} {params.settings} --needed {params.needed:q}"
        " --output {output:q}"
        " 2>&1 | tee -i {log:q} >&2"


rule release:
    """A trained model in the layout of sentence-transformers, with its card."""
    input:
        model="<results>/trained/{system}",
        measures="<results>/measures/{system}.tsv",
        bm25=of("<results>/measures/{system.bm25}.tsv"),  # on the same queries
        about=of("<results>/collections/{system.described}/about.json"),
        template=source_file("cdmae/report/templates/card.md.j2"),
    output:
        directory("<results>/models/{system}"),
    log:
        "<logs>/release/{system}.log",
    benchmark:
        "<benchmarks>/release/{system}.tsv"
    wildcard_constraints:
        system=only(systems.trained(settings)),
    conda:
        environment
    resources:
        mem_mb=4000,
        runtime=30,
    params:
        code=code("release"),
        settings=entry("system", cards),
        launch=launch,
        root=root_of("measures", "measures/{system}.tsv"),
    shell:
        "{params.launch} scripts/release.py --model {input.model:q} --measures {input.measures:q}"
        " --bm25 {input.bm25:q}"
        " --facts {params.settings:q} --root={params.root:q} --output {output:q}"
        " 2>&1 | tee -i {log:q} >&2"


rule facts:
    """The entries that the report or an exhibit shows, with the paths of their results."""
    output:
        "<results>/facts/{page}.json",
    log:
        "<logs>/facts/{page}.log",
    wildcard_constraints:
        page=only(["report", *TABLES, *FIGURES]),
    localrule: True
    resources:
        mem_mb=1000,
        runtime=10,
    params:
        settings=lambda wildcards: facts_of(wildcards.page, results),
    run:
        write_json(output[0], params.settings)
        Path(log[0]).write_text(f"wrote {output[0]}\n")


# words, style, claims and exhibits: files that the fingerprint of the code does not follow
templates = [
    source_file(path.relative_to(source))
    for path in sorted(Path(source, "cdmae/report").rglob("*.*"))
    if path.suffix in (".j2", ".css", ".csv")
]


rule report:
    """Tables, figures and one page that opens offline."""
    input:
        unpack(lambda wildcards: inputs(facts_of("report", "<results>"))),
        facts="<results>/facts/report.json",
        published=source_file("config/paper_results.csv"),
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
        mem_mb=memory_of("report"),
        runtime=minutes_of("report"),
    params:
        code=code("report"),
        launch=launch,
        folder=subpath(output.page, parent=True),
        root=root_of("facts", "facts/report.json"),
    shell:
        "{params.launch} circumstances.py {input.facts:q} {output.facts:q};"
        " {params.launch} scripts/report.py --facts {output.facts:q} --root={params.root:q}"
        " --output {params.folder:q}"
        " 2>&1 | tee -i {log:q} >&2"


# --- the paper's tables and figures, on request: ./run table_stages, ./run figure_negatives -------


rule latency:
    """The milliseconds that each method takes to mask a batch: for table_latency."""
    output:
        "<results>/latency.json",
    log:
        "<logs>/latency.log",
    benchmark:
        "<benchmarks>/latency.tsv"
    conda:
        environment
    resources:
        mem_mb=memory_of("latency"),
        runtime=minutes_of("latency"),
    params:
        code=code("latency"),
        launch=launch,
    shell:
        "{params.launch} scripts/latency.py --output {output:q}" " 2>&1 | tee -i {log:q} >&2"


rule table:
    """A table of the paper, with the measured numbers next to the published ones."""
    input:
        unpack(lambda wildcards: inputs(facts_of(wildcards.exhibit, "<results>"))),
        facts="<results>/facts/{exhibit}.json",
        published=source_file("config/paper_results.csv"),
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
        code=code("table"),
        launch=launch,
        folder=subpath(output[0], parent=True),
        root=root_of("facts", "facts/{exhibit}.json"),
    shell:
        "{params.launch} scripts/table.py --name {wildcards.exhibit} --facts {input.facts:q}"
        " --root={params.root:q} --output {params.folder:q}"
        " 2>&1 | tee -i {log:q} >&2"


use rule table as figure with:
    # A figure of the paper, with the measured numbers next to the published ones.
    output:
        multiext("<results>/tables/{exhibit}", ".svg", ".csv"),
    log:
        "<logs>/figure/{exhibit}.log",
    wildcard_constraints:
        exhibit=only(FIGURES),


for exhibit_name in (*TABLES, *FIGURES):

    rule:
        name:
            exhibit_name
        input:
            f"<results>/tables/{exhibit_name}.csv",
