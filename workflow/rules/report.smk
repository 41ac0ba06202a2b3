# Measures per query, the models with their cards, and the page at the end.

cards = {name: sources.card(settings, name) for name in systems.trained(settings)}
described = dict.fromkeys(name for facts in cards.values() for name in facts["about"])

MEASURES = expand("<results>/measures/{system}.tsv", system=settings.systems)
REPORTED = ("cdmae/report", "config/paper_results.csv")  # templates, published numbers


rule measures:
    """Every measure of every query, of all systems."""
    input:
        collections=on_targets("<results>/collections/{collection}/{file}"),
        runs=expand("<results>/runs/{system}/evaluated", system=settings.systems),
    output:
        tables=MEASURES,
    log:
        "<logs>/measures.log",
    conda:
        environment
    params:
        code=code("measures"),
        settings={
            "targets": EVALUATED,
            "measures": [" ".join(settings.evaluation.measured(*each)) for each in EVALUATED],
        },
    script:
        "../scripts/measures.py"


use rule measures as measured with:
    # of one system: for a table of the paper, which waits for no others, or on request
    input:
        collections=on_targets("<results>/collections/{collection}/{file}"),
        runs="<results>/runs/{system}/evaluated",
    output:
        tables="<results>/measured/{system}.tsv",
    log:
        "<logs>/measured/{system}.log",


rule release:
    """The trained models in the layout of sentence-transformers, with their cards."""
    input:
        trained=expand("<results>/trained/{system}", system=cards),
        measures=MEASURES,
        about=expand("<results>/collections/{collection}/about.json", collection=described),
    output:
        models=directory(expand("<results>/models/{system}", system=cards)),
    log:
        "<logs>/release.log",
    conda:
        environment
    params:
        call="cdmae.report.card.release",
        code=code("cdmae.report.card", assets=["cdmae/report/templates/card.md.j2"]),
        settings={"cards": cards},
    script:
        "../scripts/call.py"


rule report:
    """One page that opens offline, its numbers as CSV, and two tables for papers.

    The page also reads the logs of all jobs, for their seconds; it finds files by cdmae/layout.py.
    """
    input:
        collections=expand(
            "<results>/collections/{collection}/{file}",
            collection=settings.collections,
            file=FILES,
        ),
        encoders=expand("<results>/encoders/{encoder}", encoder=seeds.first(settings.encoders)),
        masked_terms=expand(
            "<results>/masked_terms/{encoder}.json", encoder=systems.masked_by_importance(settings)
        ),
        trained=expand("<results>/trained/{system}", system=cards),
        runs=expand("<results>/runs/{system}/evaluated", system=settings.systems),
        indexes=expand(
            "<results>/bm25/{system}/evaluated", system=systems.of_kind(settings, "bm25")
        ),
        measures=MEASURES,
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
    conda:
        environment
    params:
        call="cdmae.report.page.write_report",
        code=code("cdmae.report.page", assets=REPORTED),
        settings={"config": settings.values()},
    script:
        "../scripts/call.py"


rule table:
    """A table of the paper, with the measured numbers next to the published ones."""
    input:
        measures=lambda wildcards: expand(
            "<results>/measured/{system}.tsv", system=shown(wildcards)["systems"]
        ),
    output:
        multiext("<results>/tables/{exhibit}", ".csv", ".md", ".tex"),
    log:
        "<logs>/table/{exhibit}.log",
    wildcard_constraints:
        exhibit=only(sources.TABLES),
    conda:
        environment
    params:
        call="cdmae.report.page.write_exhibit",
        code=code("cdmae.report.page", assets=REPORTED),
        settings=shown,
    script:
        "../scripts/call.py"


for exhibit_name in sources.TABLES:  # on request: ./run table_stages

    rule:
        name:
            exhibit_name
        input:
            f"<results>/tables/{exhibit_name}.csv",
