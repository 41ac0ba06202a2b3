# What `snakemake` reads in a checkout. The pipeline is workflow/Snakefile, where the catalogue of
# Snakemake workflows, and whoever imports the pipeline as a module, looks for it.


include: "workflow/Snakefile"


rule default:
    default_target: True
    input:
        rules.all.input,
