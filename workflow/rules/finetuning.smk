# Stages 1 to 3 and the reranker. A stage is a config entry: what tells stages apart is whose run gives the negatives.


rule train_retriever:
    """A retriever: equation 10, with a teacher equation 11."""
    input:
        unpack(inputs("train_retriever")),
    output:
        directory(graph.trained("{system}")),
    log:
        graph.path("logs/train_retriever/{system}.log"),
    benchmark:
        graph.path("benchmarks/train_retriever/{system}.tsv")
    wildcard_constraints:
        system=only(graph.systems("retriever")),
    priority: waiting("train_retriever")
    conda:
        environment
    threads: network_cores(8, graph.start_of)
    resources:
        gpu=gpus(1),
        nodes=1,
        mem_mb=32000,
        runtime=2880,
    params:
        *code("train_retriever"),
        *entry("train_retriever", Stage),
        collection=folder("collection"),
        settings=entry_text("train_retriever"),
        seed=setting("train_retriever", "seed"),
        teacher=option("teacher", "--teacher"),
        state=state("train_retriever"),
    shell:
        "workflow/launch --nodes {resources.nodes} {resources.gpu}"
        " workflow/scripts/train_retriever.py --name {wildcards.system} --settings {params.settings:q}"
        " --encoder {input.encoder:q} --collection {params.collection:q} --tokens {input.tokens:q}"
        " --negatives {input.negatives:q} {params.teacher} --seed {params.seed} --threads {threads}"
        " --state {params.state:q} --output {output:q} 2>&1 | tee -i {log:q} >&2"


rule train_reranker:
    """A cross-encoder, trained list-wise."""
    input:
        unpack(inputs("train_reranker")),
    output:
        directory(graph.trained("{system}")),
    log:
        graph.path("logs/train_reranker/{system}.log"),
    benchmark:
        graph.path("benchmarks/train_reranker/{system}.tsv")
    wildcard_constraints:
        system=only(graph.systems("reranker")),
    priority: waiting("train_reranker")
    conda:
        environment
    threads: network_cores(8, graph.start_of)
    resources:
        gpu=gpus(1),
        nodes=1,
        mem_mb=32000,
        runtime=2880,
    params:
        *code("train_reranker"),
        *entry("train_reranker", Stage),
        collection=folder("collection"),
        settings=entry_text("train_reranker"),
        seed=setting("train_reranker", "seed"),
        state=state("train_reranker"),
    shell:
        "workflow/launch --nodes {resources.nodes} {resources.gpu}"
        " workflow/scripts/train_reranker.py --name {wildcards.system} --settings {params.settings:q}"
        " --encoder {input.encoder:q} --collection {params.collection:q} --tokens {input.tokens:q}"
        " --negatives {input.negatives:q} --seed {params.seed} --threads {threads}"
        " --state {params.state:q} --output {output:q} 2>&1 | tee -i {log:q} >&2"


rule teacher:
    """The reranker's scores of what a student is trained on: its candidates and the judged passages."""
    input:
        unpack(inputs("teacher")),
    output:
        graph.teacher("{system}"),
    log:
        graph.path("logs/teacher/{system}.log"),
    benchmark:
        graph.path("benchmarks/teacher/{system}.tsv")
    priority: waiting("teacher")
    conda:
        environment
    threads: network_cores(8, lambda system: graph.start_of(settings.systems[system].teacher))
    resources:
        gpu=gpus(1),
        mem_mb=32000,
        runtime=2880,
    params:
        *code("teacher"),
        collection=folder("collection"),
        split=setting("teacher", "split"),
        depth=setting("teacher", "depth"),
        group=setting("teacher", "group"),
        random_negatives=setting("teacher", "random_negatives"),
        epochs=setting("teacher", "epochs"),
        seed=setting("teacher", "seed"),
    shell:
        "workflow/launch {resources.gpu}"
        " workflow/scripts/teacher.py --model {input.model:q} --collection {params.collection:q}"
        " --tokens {input.tokens:q} --split {params.split:q} --negatives {input.negatives:q}"
        " --depth {params.depth} --group {params.group} --random-negatives {params.random_negatives}"
        " --epochs {params.epochs} --seed {params.seed} --output {output:q} --threads {threads}"
        " 2>&1 | tee -i {log:q} >&2"
