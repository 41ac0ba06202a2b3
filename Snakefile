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


# Rules named after --cache share what they make with other workflows (CLUSTERS.md). Snakemake allows that only of rules
# without a benchmark: one for what was taken from the cache would be a lie.
for name in workflow.workflow_settings.cache or []:
    if workflow.is_rule(name):
        workflow.get_rule(name)._benchmark = None
