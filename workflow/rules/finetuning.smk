# Stages 1 to 3 and the reranker. A stage is a config entry; stages differ in the system that gives
# their negatives.

training = entry(
    "system",
    {
        name: settings.stages[settings.systems[name].stage].values(
            **settings.systems[name].teachers()
        )
        for name in systems.trained(settings)
    },
)

taught = {row["scores"] for row in tables["system"].values() if row.get("scores")}


rule train_retriever:
    """A retriever: equation 10, or equation 11 with a teacher."""
    input:
        encoder=of("<results>/encoders/{system.encoder}"),
        after=of("<results>/trained/{system.after}"),
        passages=of("<results>/collections/{system.corpus}/passages.parquet"),
        queries=of("<results>/collections/{system.corpus}/queries.parquet"),
        qrels=of("<results>/collections/{system.corpus}/qrels.parquet"),
        tokens=of("<results>/tokens/{system.start}/{system.corpus}"),
        negatives=of(
            "<results>/negatives/{system.negatives}.{system.corpus}.{system.split}.parquet"
        ),
        teacher=of("<results>/teachers/{system.scores}.parquet"),
        ranking=of("<results>/negatives/{system.ranking}.parquet"),
        in_batch_teacher=of("<results>/trained/{system.in_batch_teacher}"),
        joint_teacher=of("<results>/trained/{system.joint_teacher}"),
    output:
        directory("<results>/trained/{system}"),
    log:
        "<logs>/train_retriever/{system}.log",
    benchmark:
        "<benchmarks>/train_retriever/{system}.tsv"
    wildcard_constraints:
        system=of_kind("retriever"),
    priority: waiting("system", "train_retriever")
    conda:
        environment
    threads: network_cores("train_retriever", 8)
    resources:
        gpu=gpus_of("train_retriever"),
        nodes=1,
        mem_mb=memory_of("train_retriever"),
        runtime=minutes_of("train_retriever"),
    params:
        code=code("train_retriever"),
        settings=training,
        launch=launch,
        collection=folder("passages"),
        state=state("train_retriever", training, code("train_retriever")),
    shell:
        "state=$({params.launch} state.py {params.state:q} {input:q});"
        " {params.launch} --nodes {resources.nodes} --gpus {resources.gpu}"
        " scripts/train_retriever.py"
        " --name {wildcards.system} --encoder {input.encoder:q} --after {input.after:q}"
        " --collection {params.collection:q}"
        " --tokens {input.tokens:q} --negatives {input.negatives:q} --teacher {input.teacher:q}"
        " --ranking {input.ranking:q} --in-batch-teacher {input.in_batch_teacher:q}"
        " --joint-teacher {input.joint_teacher:q}"
        " --settings {params.settings:q} --seed {params.settings[seed]}"
        ' --state "$state" --threads {threads} --output {output:q}'
        " 2>&1 | tee -i {log:q} >&2"


rule train_reranker:
    """A cross-encoder, trained list-wise, or by equation 11 with a teacher."""
    input:
        encoder=of("<results>/encoders/{system.encoder}"),
        after=of("<results>/trained/{system.after}"),
        passages=of("<results>/collections/{system.corpus}/passages.parquet"),
        queries=of("<results>/collections/{system.corpus}/queries.parquet"),
        qrels=of("<results>/collections/{system.corpus}/qrels.parquet"),
        tokens=of("<results>/tokens/{system.start}/{system.corpus}"),
        negatives=of(
            "<results>/negatives/{system.negatives}.{system.corpus}.{system.split}.parquet"
        ),
        teacher=of("<results>/teachers/{system.scores}.parquet"),
        ranking=of("<results>/negatives/{system.ranking}.parquet"),
    output:
        directory("<results>/trained/{system}"),
    log:
        "<logs>/train_reranker/{system}.log",
    benchmark:
        "<benchmarks>/train_reranker/{system}.tsv"
    wildcard_constraints:
        system=of_kind("reranker"),
    priority: waiting("system", "train_reranker")
    conda:
        environment
    threads: network_cores("train_reranker", 8)
    resources:
        gpu=gpus_of("train_reranker"),
        nodes=1,
        mem_mb=memory_of("train_reranker"),
        runtime=minutes_of("train_reranker"),
    params:
        code=code("train_reranker"),
        settings=training,
        launch=launch,
        collection=folder("passages"),
        state=state("train_reranker", training, code("train_reranker")),
    shell:
        "state=$({params.launch} state.py {params.state:q} {input:q});"
        " {params.launch} --nodes {resources.nodes} --gpus {resources.gpu}"
        " scripts/train_reranker.py"
        " --name {wildcards.system} --encoder {input.encoder:q} --after {input.after:q}"
        " --collection {params.collection:q}"
        " --tokens {input.tokens:q} --negatives {input.negatives:q} --teacher {input.teacher:q}"
        " --ranking {input.ranking:q} --settings {params.settings:q} --seed {params.settings[seed]}"
        ' --state "$state" --threads {threads} --output {output:q}'
        " 2>&1 | tee -i {log:q} >&2"


rule teacher:
    """A reranker's scores of the candidates and judged passages that a student is trained on."""
    input:
        model=of("<results>/trained/{system.teacher}"),
        passages=of("<results>/collections/{system.corpus}/passages.parquet"),
        queries=of("<results>/collections/{system.corpus}/queries.parquet"),
        qrels=of("<results>/collections/{system.corpus}/qrels.parquet"),
        tokens=of("<results>/tokens/{system.teacher_start}/{system.corpus}"),
        negatives=of(
            "<results>/negatives/{system.negatives}.{system.corpus}.{system.split}.parquet"
        ),
    output:
        "<results>/teachers/{system}.parquet",
    log:
        "<logs>/teacher/{system}.log",
    benchmark:
        "<benchmarks>/teacher/{system}.tsv"
    wildcard_constraints:
        system=only(taught),
    priority: waiting("system")
    conda:
        environment
    threads: network_cores("teacher", 8)
    resources:
        gpu=gpus_of("teacher"),
        mem_mb=memory_of("teacher"),
        runtime=minutes_of("teacher"),
    params:
        code=code("teacher"),
        settings=drawing,
        launch=launch,
        collection=folder("passages"),
    shell:
        "{params.launch} --gpus {resources.gpu} scripts/teacher.py --model {input.model:q}"
        " --collection {params.collection:q} --tokens {input.tokens:q}"
        " --negatives {input.negatives:q} {params.settings}"
        " --output {output:q} --threads {threads}"
        " 2>&1 | tee -i {log:q} >&2"
