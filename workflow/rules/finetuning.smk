# Stages 1 to 3 and the reranker. A stage is a config entry: what tells stages apart is whose run gives the negatives.

training = {
    name: settings.stages[settings.systems[name].stage].values(
        teacher=bool(settings.systems[name].teacher)
    )
    for name in systems.trained(settings)
}

drawn = {  # what decides which candidates a teacher scores
    name: settings.stages[settings.systems[name].stage].drawn()
    for name, row in system_rows.items()
    if row.get("scores")
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
    priority: waiting("systems", "train_retriever")
    threads: network_cores("train_retriever", 8)
    resources:
        gpu=gpus_of("train_retriever"),
        nodes=1,
        mem_mb=memory_of("train_retriever"),
        runtime=minutes_of("train_retriever"),
    params:
        code=code("train_retriever"),
        settings=settings_of(training),
        collection=folder("passages"),
        state=state("train_retriever", training),
    shell:
        "state=$(python workflow/state.py {params.state:q} {input:q});"
        " workflow/launch --nodes {resources.nodes} {resources.gpu}"
        " workflow/scripts/train_retriever.py --name {wildcards.system} --settings {params.settings:q}"
        " --encoder {input.encoder:q} --collection {params.collection:q} --tokens {input.tokens:q}"
        " --negatives {input.negatives:q} --teacher {input.teacher:q} --ranking {input.ranking:q}"
        " --seed {params.settings[seed]} --threads {threads}"
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
    priority: waiting("systems", "train_reranker")
    threads: network_cores("train_reranker", 8)
    resources:
        gpu=gpus_of("train_reranker"),
        nodes=1,
        mem_mb=memory_of("train_reranker"),
        runtime=minutes_of("train_reranker"),
    params:
        code=code("train_reranker"),
        settings=settings_of(training),
        collection=folder("passages"),
        state=state("train_reranker", training),
    shell:
        "state=$(python workflow/state.py {params.state:q} {input:q});"
        " workflow/launch --nodes {resources.nodes} {resources.gpu}"
        " workflow/scripts/train_reranker.py --name {wildcards.system} --settings {params.settings:q}"
        " --encoder {input.encoder:q} --collection {params.collection:q} --tokens {input.tokens:q}"
        " --negatives {input.negatives:q} --seed {params.settings[seed]} --threads {threads}"
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
        system=only(row["scores"] for row in system_rows.values() if row.get("scores")),
    priority: waiting("systems")
    threads: network_cores("teacher", 8)
    resources:
        gpu=gpus_of("teacher"),
        mem_mb=memory_of("teacher"),
        runtime=minutes_of("teacher"),
    params:
        code=code("teacher"),
        settings=settings_of(drawn),
        collection=folder("passages"),
    shell:
        "workflow/launch {resources.gpu}"
        " workflow/scripts/teacher.py --model {input.model:q} --collection {params.collection:q}"
        " --tokens {input.tokens:q} --negatives {input.negatives:q} --settings {params.settings:q}"
        " --output {output:q} --threads {threads} 2>&1 | tee -i {log:q} >&2"
