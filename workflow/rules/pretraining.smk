# Masked auto-encoders (equations 1 to 6 and 9). The decoder is discarded; what remains is the encoder.


rule pretrain:
    """An encoder, pre-trained, or as it starts where the objective is none."""
    input:
        unpack(inputs("pretrain")),
    output:
        directory(graph.encoder("{encoder}")),
    log:
        graph.path("logs/pretrain/{encoder}.log"),
    benchmark:
        graph.path("benchmarks/pretrain/{encoder}.tsv")
    wildcard_constraints:
        encoder=only(each for each in settings.encoders if not settings.encoders[each].snapshot_of),
    priority: waiting("pretrain", gpus(8))
    conda:
        environment
    threads: network_cores(8, lambda encoder: settings.encoders[encoder].start)
    resources:
        gpu=gpus(8),
        nodes=1,
        mem_mb=32000,
        runtime=7200,
    params:
        *code("pretrain"),
        *entry("pretrain", Encoder),
        *entry("pretrain", Start, "start"),
        plugins=plugins("pretrain"),
        settings=entry_text("pretrain"),
        start=entry_text("pretrain", "start"),
        seed=setting("pretrain", "seed"),
        after=option("after", "--after"),
        tokens=option("tokens", "--tokens"),
        importance=option("importance", "--importance"),
        snapshots=lambda wildcards: " ".join(["--snapshots", *map(str, graph.snapshots(*wildcards))]),
        state=state("pretrain"),
    shell:
        "workflow/launch --nodes {resources.nodes} {resources.gpu}"
        " workflow/scripts/pretrain.py --name {wildcards.encoder} --settings {params.settings:q}"
        " --start {params.start:q} --tokenizer {input.tokenizer:q} {params.after} {params.tokens}"
        " {params.importance} {params.snapshots} --seed {params.seed} --threads {threads} --state {params.state:q}"
        " --output {output:q} 2>&1 | tee -i {log:q} >&2"


rule snapshot:
    """An encoder as it was in the middle of another one's training, which kept it."""
    input:
        unpack(inputs("snapshot")),
    output:
        directory(graph.encoder("{encoder}")),
    log:
        graph.path("logs/snapshot/{encoder}.log"),
    benchmark:
        graph.path("benchmarks/snapshot/{encoder}.tsv")
    wildcard_constraints:
        encoder=only(each for each in settings.encoders if settings.encoders[each].snapshot_of),
    priority: waiting("snapshot")
    conda:
        environment
    resources:
        mem_mb=2000,
        runtime=30,
    params:
        *code("snapshot"),
        step=setting("snapshot", "step"),
    shell:
        "python workflow/scripts/snapshot.py --name {wildcards.encoder} --encoder {input.encoder:q}"
        " --step {params.step} --output {output:q} 2>&1 | tee -i {log:q} >&2"
