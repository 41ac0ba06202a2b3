# Measures per query, the models with their cards, and the page at the end.

cards = {name: {"facts": card(settings, name)} for name in systems.trained(settings)}
for name, values in cards.items():
    tables["system"][name]["described"] = list(values["facts"]["about"])
    tables["system"][name]["beside"] = systems.beside(settings, name)

REPORTED = ("cdmae/report", "config")  # templates, styles, claims, and the published numbers


rule measures:
    """Every measure of every query of a system."""
    input:
        collections=on_targets("<results>/collections/{collection}/{file}"),
        runs="<results>/runs/{system}/evaluated",
    output:
        "<results>/measures/{system}.tsv",
    log:
        "<logs>/measures/{system}.log",
    benchmark:
        "<benchmarks>/measures/{system}.tsv"
    conda:
        environment
    params:
        code=code("measures"),
        settings=measuring,
        # checks by this job; a function of the output: a change does not run it again
        needed=lambda wildcards, output: {
            name: systems.needed(settings, name) for name, _ in EVALUATED
        },
    script:
        "../scripts/measures.py"


rule sparsity:
    """The number of entries in a sparse system's vectors, and the cost of searching them."""
    input:
        model=of("<results>/trained/{system.network}"),
        collections=on_targets("<results>/collections/{collection}/{file}"),
        vectors=on_targets("<results>/vectors/{system}/{collection}"),
    output:
        "<results>/sparsity/{system}.json",
    log:
        "<logs>/sparsity/{system}.log",
    benchmark:
        "<benchmarks>/sparsity/{system}.tsv"
    wildcard_constraints:
        system=only(systems.sparse(settings)),
    conda:
        environment
    threads: network_cores
    resources:
        gpu=gpus(1),
    params:
        code=code("sparsity", module_of),
        settings=measuring_sparsity,
    script:
        "../scripts/sparsity.py"


rule release:
    """A trained model in the layout of sentence-transformers, with its card."""
    input:
        model="<results>/trained/{system}",
        measures="<results>/measures/{system}.tsv",
        beside=of("<results>/measures/{system.beside}.tsv"),  # on the same queries
        about=of("<results>/collections/{system.described}/about.json"),
    output:
        directory("<results>/models/{system}"),
    log:
        "<logs>/release/{system}.log",
    benchmark:
        "<benchmarks>/release/{system}.tsv"
    wildcard_constraints:
        system=only(cards),
    conda:
        environment
    params:
        code=code("release", folders=REPORTED),
        settings=lambda wildcards: cards[wildcards.system],
    script:
        "../scripts/release.py"


rule report:
    """One page that opens offline, its numbers as CSV, and two tables for papers."""
    input:
        unpack(lambda wildcards: inputs(facts_of("report", "<results>"))),
    output:
        page=report(
            "<results>/report/index.html",
            caption="../report/page.rst",
            category="Report",
            labels={"file": "the whole report"},
        ),
        frames=report(
            multiext(
                "<results>/report/",
                *("results.csv", "comparisons.csv", "costs.csv", "trainings.csv"),
            ),
            caption="../report/frames.rst",
            category="Numbers",
        ),
        tables=multiext("<results>/report/results", ".md", ".tex"),
        record="<results>/facts.json",
    log:
        "<logs>/report.log",
    benchmark:
        "<benchmarks>/report.tsv"
    conda:
        environment
    params:
        code=code("report", folders=REPORTED),
        settings=lambda wildcards: {"facts": facts_of("report", results)},
    script:
        "../scripts/report.py"


# --- the paper's tables, on request: ./run table_stages -------------------------------------------


rule table:
    """A table of the paper, with the measured numbers next to the published ones."""
    input:
        unpack(lambda wildcards: inputs(facts_of(wildcards.exhibit, "<results>"))),
    output:
        multiext("<results>/tables/{exhibit}", ".csv", ".md", ".tex"),
    log:
        "<logs>/table/{exhibit}.log",
    wildcard_constraints:
        exhibit=only(TABLES),
    conda:
        environment
    params:
        code=code("table", folders=REPORTED),
        settings=lambda wildcards: {"facts": facts_of(wildcards.exhibit, results)},
    script:
        "../scripts/table.py"


for exhibit_name in TABLES:

    rule:
        name:
            exhibit_name
        input:
            f"<results>/tables/{exhibit_name}.csv",
