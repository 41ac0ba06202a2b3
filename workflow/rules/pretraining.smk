# Masked auto-encoders (equations 1 to 6 and 9): the decoder is discarded, the encoder kept.

snapshots = {
    name: {"step": encoder.take_step}
    for name, encoder in settings.encoders.items()
    if encoder.snapshot_of
}
untrained = {
    name for name, encoder in settings.encoders.items() if not encoder.pretrained
} - snapshots.keys()
pretraining = {
    name: {
        "settings": encoder.values(),
        "start": settings.starts[encoder.start].values(),
        "snapshots": systems.snapshots(settings, name),
        "seed": encoder.seed,
    }
    for name, encoder in settings.encoders.items()
}


settings_of_pretraining = entry("encoder", pretraining, Options)
code_of_pretraining = code("pretrain", modules_of)


rule pretrain:
    """A pre-trained encoder."""
    input:
        tokenizer=of("<results>/tokenizers/{encoder.start}"),
        checkpoint=files_of("{encoder.checkpoint}"),
        after=of("<results>/encoders/{encoder.after}"),
        tokens=of("<results>/tokens/{encoder.start}/{encoder.corpus}"),
        importance=of(
            "<results>/{encoder.estimate}/{encoder.importance}/{encoder.start}/{encoder.corpus}"
        ),
        queries=of("<results>/collections/{encoder.asked}/queries.parquet"),
        qrels=of("<results>/collections/{encoder.asked}/qrels.parquet"),
        passages=of("<results>/collections/{encoder.asked}/passages.parquet"),
        texts=files_of("{encoder.texts}"),
        generator=files_of("{encoder.generator}"),
    output:
        directory("<results>/encoders/{encoder}"),
    log:
        "<logs>/pretrain/{encoder}.log",
    benchmark:
        "<benchmarks>/pretrain/{encoder}.tsv"
    wildcard_constraints:
        encoder=only(settings.encoders.keys() - snapshots.keys() - untrained),
    priority: waiting("encoder", "pretrain")
    conda:
        environment
    threads: network_cores("pretrain", 8)
    resources:
        gpu=gpus_of("pretrain"),
        nodes=1,
        mem_mb=memory_of("pretrain"),
        runtime=minutes_of("pretrain"),
    params:
        code=code_of_pretraining,
        settings=settings_of_pretraining,
        asked=folder("queries"),
        launch=launch,
        state=state("pretrain", settings_of_pretraining, code_of_pretraining),
    shell:
        "state=$({params.launch} state.py {params.state:q} {input:q});"
        " {params.launch} --nodes {resources.nodes} --gpus {resources.gpu} scripts/pretrain.py"
        " --name {wildcards.encoder} --tokenizer {input.tokenizer:q} --after {input.after:q}"
        " --tokens {input.tokens:q} --importance {input.importance:q}"
        " --asked {params.asked:q} {params.settings}"
        ' --state "$state" --threads {threads} --output {output:q}'
        " 2>&1 | tee -i {log:q} >&2"


use rule pretrain as untrained with:
    # An encoder with objective none: the weights of its checkpoint, or random weights.
    log:
        "<logs>/untrained/{encoder}.log",
    benchmark:
        "<benchmarks>/untrained/{encoder}.tsv"
    wildcard_constraints:
        encoder=only(untrained),
    priority: waiting("encoder")
    threads: 1
    resources:
        gpu=0,
        nodes=1,
        mem_mb=memory_of("untrained"),
        runtime=minutes_of("untrained"),


rule snapshot:
    """The weights that the training of another encoder kept at an earlier step."""
    input:
        encoder=of("<results>/encoders/{encoder.snapshot_of}"),
    output:
        directory("<results>/encoders/{encoder}"),
    log:
        "<logs>/snapshot/{encoder}.log",
    benchmark:
        "<benchmarks>/snapshot/{encoder}.tsv"
    wildcard_constraints:
        encoder=only(snapshots),
    priority: waiting("encoder")
    conda:
        environment
    resources:
        mem_mb=2000,
        runtime=30,
    params:
        code=code("snapshot"),
        settings=entry("encoder", snapshots, Options),
        launch=launch,
    shell:
        "{params.launch} scripts/snapshot.py --name {wildcards.encoder} --encoder {input.encoder:q}"
        " {params.settings} --output {output:q}"
        " 2>&1 | tee -i {log:q} >&2"
