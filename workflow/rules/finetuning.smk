# Stages 1 to 3 and the reranker. A stage is a config entry: what tells stages apart is whose run gives the negatives.

stage_settings = {
    name: settings.stages[system.stage].values(teacher=bool(system.teacher))
    for name, system in settings.systems.items()
    if system.kind in TRAINED
}

drawn = {  # what decides which candidates a teacher scores
    name: {key: row[key] for key in systems.OF_STAGES if key in row}
    for name, row in system_rows.items()
    if row["scores"]
}


rule train_retriever:
    """A retriever: equation 10, with a teacher equation 11."""
    input:
        encoder=of_system("<results>/encoders/{encoder}"),
        passages=of_system("<results>/collections/{corpus}/passages.parquet"),
        queries=of_system("<results>/collections/{corpus}/queries.parquet"),
        qrels=of_system("<results>/collections/{corpus}/qrels.parquet"),
        tokens=of_system("<results>/tokens/{start}/{corpus}"),
        negatives=of_system("<results>/negatives/{negatives}.{corpus}.{split}.parquet"),
        teacher=of_system("<results>/teachers/{scores}.parquet"),
        ranking=of_system("<results>/negatives/{ranking}.parquet"),
    output:
        directory("<results>/trained/{system}"),
    log:
        "<logs>/train_retriever/{system}.log",
    benchmark:
        "<benchmarks>/train_retriever/{system}.tsv"
    wildcard_constraints:
        system=of_kind("retriever"),
    priority: waiting("systems", 0)
    threads: network_cores(8, system_rows, "start")
    resources:
        gpu=gpus(1),
        nodes=1,
        mem_mb=32000,
        runtime=2880,
    params:
        *code("train_retriever"),
        *settings_of(stage_settings),
        collection=folder("passages"),
        settings=text_of(stage_settings),
        seed=column(system_rows, "seed"),
        state=state("train_retriever", [stage_settings], {}),
    shell:
        "state=$(python workflow/state.py {params.state:q} {input:q});"
        " workflow/launch --nodes {resources.nodes} {resources.gpu}"
        " workflow/scripts/train_retriever.py --name {wildcards.system} --settings {params.settings:q}"
        " --encoder {input.encoder:q} --collection {params.collection:q} --tokens {input.tokens:q}"
        " --negatives {input.negatives:q} --teacher {input.teacher:q} --ranking {input.ranking:q}"
        " --seed {params.seed} --threads {threads}"
        ' --state "$state" --output {output:q} 2>&1 | tee -i {log:q} >&2'


rule train_reranker:
    """A cross-encoder, trained list-wise."""
    input:
        encoder=of_system("<results>/encoders/{encoder}"),
        passages=of_system("<results>/collections/{corpus}/passages.parquet"),
        queries=of_system("<results>/collections/{corpus}/queries.parquet"),
        qrels=of_system("<results>/collections/{corpus}/qrels.parquet"),
        tokens=of_system("<results>/tokens/{start}/{corpus}"),
        negatives=of_system("<results>/negatives/{negatives}.{corpus}.{split}.parquet"),
    output:
        directory("<results>/trained/{system}"),
    log:
        "<logs>/train_reranker/{system}.log",
    benchmark:
        "<benchmarks>/train_reranker/{system}.tsv"
    wildcard_constraints:
        system=of_kind("reranker"),
    priority: waiting("systems", 0)
    threads: network_cores(8, system_rows, "start")
    resources:
        gpu=gpus(1),
        nodes=1,
        mem_mb=32000,
        runtime=2880,
    params:
        *code("train_reranker"),
        *settings_of(stage_settings),
        collection=folder("passages"),
        settings=text_of(stage_settings),
        seed=column(system_rows, "seed"),
        state=state("train_reranker", [stage_settings], {}),
    shell:
        "state=$(python workflow/state.py {params.state:q} {input:q});"
        " workflow/launch --nodes {resources.nodes} {resources.gpu}"
        " workflow/scripts/train_reranker.py --name {wildcards.system} --settings {params.settings:q}"
        " --encoder {input.encoder:q} --collection {params.collection:q} --tokens {input.tokens:q}"
        " --negatives {input.negatives:q} --seed {params.seed} --threads {threads}"
        ' --state "$state" --output {output:q} 2>&1 | tee -i {log:q} >&2'


rule teacher:
    """The reranker's scores of what a student is trained on: its candidates and the judged passages."""
    input:
        model=of_system("<results>/trained/{teacher}"),
        passages=of_system("<results>/collections/{corpus}/passages.parquet"),
        queries=of_system("<results>/collections/{corpus}/queries.parquet"),
        qrels=of_system("<results>/collections/{corpus}/qrels.parquet"),
        tokens=of_system("<results>/tokens/{teacher_start}/{corpus}"),
        negatives=of_system("<results>/negatives/{negatives}.{corpus}.{split}.parquet"),
    output:
        "<results>/teachers/{system}.parquet",
    log:
        "<logs>/teacher/{system}.log",
    benchmark:
        "<benchmarks>/teacher/{system}.tsv"
    wildcard_constraints:
        system=only(row["scores"] for row in system_rows.values() if row["scores"]),
    priority: waiting("systems", 0)
    threads: network_cores(8, system_rows, "teacher_start")
    resources:
        gpu=gpus(1),
        mem_mb=32000,
        runtime=2880,
    params:
        *code("teacher"),
        *settings_of(drawn),
        collection=folder("passages"),
        settings=text_of(drawn),
    shell:
        "workflow/launch {resources.gpu}"
        " workflow/scripts/teacher.py --model {input.model:q} --collection {params.collection:q}"
        " --tokens {input.tokens:q} --negatives {input.negatives:q} --settings {params.settings:q}"
        " --output {output:q} --threads {threads} 2>&1 | tee -i {log:q} >&2"
