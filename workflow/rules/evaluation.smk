# Measures per query, the models with their cards, and the page at the end.

from cdmae.files import write_json

cards = {name: card(settings, name) for name in systems.trained(settings)}
card_rows = {name: {"about": list(told["about"].values())} for name, told in cards.items()}


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
    resources:
        mem_mb=memory_of("measures"),
        runtime=minutes_of("measures"),
    params:
        code=code("measures"),
        settings=measuring,
        collections=folders("queries"),
    shell:
        "python workflow/scripts/measures.py --system {wildcards.system:q} --names {params.settings[names]:q}"
        " --collections {params.collections:q} --splits {params.settings[splits]:q} --runs {input.runs:q}"
        " --measures {params.settings[measures]:q} --output {output:q} 2>&1 | tee -i {log:q} >&2"


rule release:
    """A trained model with its card, as others load it."""
    input:
        model="<results>/trained/{system}",
        measures="<results>/measures/{system}.tsv",
        about=of(card_rows, "{about}"),
        template=local("cdmae/report/templates/card.md.j2"),
    output:
        directory("<results>/models/{system}"),
    log:
        "<logs>/release/{system}.log",
    benchmark:
        "<benchmarks>/release/{system}.tsv"
    wildcard_constraints:
        system=only(systems.trained(settings)),
    resources:
        mem_mb=4000,
        runtime=30,
    params:
        code=code("release"),
        settings=settings_of(cards),
        root=root_of("measures", "measures/{system}.tsv"),
    shell:
        "python workflow/scripts/release.py --model {input.model:q} --measures {input.measures:q}"
        " --facts {params.settings:q} --root {params.root:q} --output {output:q} 2>&1 | tee -i {log:q} >&2"


rule facts:
    """The entries that the report or an exhibit shows, and the paths of the results that it reads."""
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
        settings=lambda wildcards: facts_of(wildcards.page),
    run:
        write_json(output[0], params.settings)
        Path(log[0]).write_text(f"wrote {output[0]}\n")


# words, style and tables of claims and exhibits: files that the code's fingerprint does not follow
templates = sorted(
    str(path)
    for path in Path("cdmae/report").rglob("*.*")
    if path.suffix in (".j2", ".css", ".csv")
)


rule report:
    """Tables, figures and one page that opens offline."""
    input:
        unpack(lambda wildcards: inputs(facts_of("report"))),
        facts="<results>/facts/report.json",
        published=local("config/paper_results.csv"),
        templates=[local(path) for path in templates],
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
    resources:
        mem_mb=memory_of("report"),
        runtime=minutes_of("report"),
    params:
        code=code("report"),
        folder=subpath(output.page, parent=True),
        root=root_of("facts", "facts/report.json"),
    shell:
        "python workflow/circumstances.py {input.facts:q} {output.facts:q};"
        " python workflow/scripts/report.py --facts {output.facts:q} --root {params.root:q} --output {params.folder:q}"
        " 2>&1 | tee -i {log:q} >&2"


# --- the paper's tables and figures, on request: ./run table_stages, ./run figure_negatives -------------------------


rule latency:
    """Milliseconds of masking a batch as each method does it: for table_latency."""
    output:
        "<results>/latency.json",
    log:
        "<logs>/latency.log",
    benchmark:
        "<benchmarks>/latency.tsv"
    resources:
        mem_mb=memory_of("latency"),
        runtime=minutes_of("latency"),
    params:
        code=code("latency"),
    shell:
        "python workflow/scripts/latency.py --output {output:q} 2>&1 | tee -i {log:q} >&2"


rule table:
    """A table of the paper with our numbers beside its own."""
    input:
        unpack(lambda wildcards: inputs(facts_of(wildcards.exhibit))),
        facts="<results>/facts/{exhibit}.json",
        published=local("config/paper_results.csv"),
        templates=[local(path) for path in templates],
    output:
        multiext("<results>/tables/{exhibit}", ".csv", ".md", ".tex", ".html"),
    log:
        "<logs>/table/{exhibit}.log",
    wildcard_constraints:
        exhibit=only(TABLES),
    resources:
        mem_mb=8000,
        runtime=60,
    params:
        code=code("table"),
        folder=subpath(output[0], parent=True),
        root=root_of("facts", "facts/{exhibit}.json"),
    shell:
        "python workflow/scripts/table.py --name {wildcards.exhibit} --facts {input.facts:q}"
        " --root {params.root:q} --output {params.folder:q} 2>&1 | tee -i {log:q} >&2"


use rule table as figure with:
    # A figure of the paper with our numbers beside its own.
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
