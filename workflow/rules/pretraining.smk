# Masked auto-encoders (equations 1 to 6 and 9). The decoder is discarded; what remains is the encoder.

pretraining = {
    name: {
        "encoder": encoder.values(),
        "start": settings.starts[encoder.start].values(),
        "snapshots": systems.snapshots(settings, name),
    }
    for name, encoder in settings.encoders.items()
}
modules_of = {  # modules that the settings name
    name: [f"cdmae.pretraining.objectives.{encoder.objective}"] * encoder.pretrained
    + [f"cdmae.masking.strategies.{masking}" for masking in dict.fromkeys(encoder.maskings)]
    for name, encoder in settings.encoders.items()
}
snapshots = {
    name: {"step": encoder.take_step}
    for name, encoder in settings.encoders.items()
    if encoder.snapshot_of
}
untrained = {
    name for name, encoder in settings.encoders.items() if not encoder.pretrained
} - snapshots.keys()


rule pretrain:
    """A pre-trained encoder."""
    input:
        tokenizer=of_encoder("<results>/tokenizers/{start}"),
        checkpoint=of_encoder("{checkpoint}"),
        after=of_encoder("<results>/encoders/{after}"),
        tokens=of_encoder("<results>/tokens/{start}/{corpus}"),
        importance=of_encoder("<results>/{estimate}/{importance}/{start}/{corpus}"),
        generator=of_encoder("{generator}"),
    output:
        directory("<results>/encoders/{encoder}"),
    log:
        "<logs>/pretrain/{encoder}.log",
    benchmark:
        "<benchmarks>/pretrain/{encoder}.tsv"
    wildcard_constraints:
        encoder=only(settings.encoders.keys() - snapshots.keys() - untrained),
    priority: waiting("encoders", "pretrain")
    threads: network_cores("pretrain", 8)
    resources:
        gpu=gpus_of("pretrain"),
        nodes=1,
        mem_mb=memory_of("pretrain"),
        runtime=minutes_of("pretrain"),
    params:
        code=code("pretrain", modules_of),
        settings=settings_of(pretraining),
        state=state("pretrain", pretraining, modules_of),
    shell:
        "state=$(python workflow/state.py {params.state:q} {input:q});"
        " workflow/launch --nodes {resources.nodes} {resources.gpu}"
        " workflow/scripts/pretrain.py --name {wildcards.encoder} --settings {params.settings[encoder]:q}"
        " --start {params.settings[start]:q} --tokenizer {input.tokenizer:q} --after {input.after:q}"
        " --tokens {input.tokens:q} --importance {input.importance:q} --snapshots {params.settings[snapshots]}"
        ' --seed {params.settings[encoder][seed]} --threads {threads} --state "$state"'
        " --output {output:q} 2>&1 | tee -i {log:q} >&2"


use rule pretrain as untrained with:
    # An encoder of objective none: the weights of its checkpoint, or random ones.
    log:
        "<logs>/untrained/{encoder}.log",
    benchmark:
        "<benchmarks>/untrained/{encoder}.tsv"
    wildcard_constraints:
        encoder=only(untrained),
    priority: waiting("encoders")
    threads: 1
    resources:
        gpu=0,
        nodes=1,
        mem_mb=memory_of("untrained"),
        runtime=minutes_of("untrained"),


rule snapshot:
    """An encoder as it was in the middle of another one's training, which kept it."""
    input:
        encoder=of_encoder("<results>/encoders/{snapshot_of}"),
    output:
        directory("<results>/encoders/{encoder}"),
    log:
        "<logs>/snapshot/{encoder}.log",
    benchmark:
        "<benchmarks>/snapshot/{encoder}.tsv"
    wildcard_constraints:
        encoder=only(snapshots),
    priority: waiting("encoders")
    resources:
        mem_mb=2000,
        runtime=30,
    params:
        code=code("snapshot"),
        settings=settings_of(snapshots),
    shell:
        "python workflow/scripts/snapshot.py --name {wildcards.encoder} --encoder {input.encoder:q}"
        " --step {params.settings[step]} --output {output:q} 2>&1 | tee -i {log:q} >&2"
