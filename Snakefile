# The whole pipeline, one chapter per file in the order of the data; `rule all` is what a bare `snakemake` makes.
# Which job reads and writes what, and which settings it depends on: cdmae/jobs.py. Where things lie: cdmae/graph.py.


report: "workflow/report/workflow.rst"


include: "workflow/rules/configuration.smk"


rule all:
    input:
        graph.needed(),


include: "workflow/rules/collections.smk"
include: "workflow/rules/importance.smk"
include: "workflow/rules/pretraining.smk"
include: "workflow/rules/lexical.smk"
include: "workflow/rules/finetuning.smk"
include: "workflow/rules/runs.smk"
include: "workflow/rules/evaluation.smk"
