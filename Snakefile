# The whole pipeline, one chapter per file in the order of the data; `rule all` is what a bare `snakemake` makes.
# A rule shows what it reads and writes; workflow/rules/common.smk fills in what depends on an entry of the config.


report: "workflow/report/workflow.rst"


include: "workflow/rules/common.smk"
include: "workflow/rules/process.smk"


rule all:
    input:
        "<results>/report/index.html",
        expand("<results>/models/{system}", system=systems.trained(settings)),
        expand(
            "<results>/{searched}/{collection}",
            searched=systems.searched(settings),
            collection=systems.only_searched(settings),
        ),


include: "workflow/rules/collections.smk"
include: "workflow/rules/importance.smk"
include: "workflow/rules/pretraining.smk"
include: "workflow/rules/lexical.smk"
include: "workflow/rules/finetuning.smk"
include: "workflow/rules/runs.smk"
include: "workflow/rules/evaluation.smk"


with in_a_sentence():
    check(workflow.rules, settings)


# For --sdm conda all jobs have one environment. (Snakemake's own directive for that is for its process, not for jobs.)
for rule_of_jobs in workflow.rules:
    if rule_of_jobs.shellcmd:
        rule_of_jobs.conda_env = str(Path(workflow.basedir, f"envs/{device or 'cpu'}.yaml"))
