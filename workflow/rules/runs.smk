# Every system's runs: over training queries (negatives for the next stage) and over everything that is evaluated.


weighing = {
    name: {
        **{key: system_rows[name][key] for key in ("of", "method", "k", "weights", "tuned")},
        "depth": settings.evaluation.depth,
    }
    for name in systems.of_kind(settings, "fusion")
}


rule vectors:
    """A retriever's vectors of a collection's passages."""
    input:
        model="<results>/trained/{system}",
        tokens=of_system("<results>/tokens/{start}/{collection}"),
    output:
        directory("<results>/vectors/{system}/{collection}"),
    log:
        "<logs>/vectors/{system}.{collection}.log",
    benchmark:
        "<benchmarks>/vectors/{system}.{collection}.tsv"
    wildcard_constraints:
        system=of_kind("retriever"),
    priority: waiting("systems", 0)
    threads: network_cores(8, system_rows, "start")
    resources:
        gpu=gpus(1),
        mem_mb=memory_of("vectors", gpus(1)),
        runtime=1440,
    params:
        code=code("vectors"),
        settings=encoding,
    shell:
        "workflow/launch {resources.gpu}"
        " workflow/scripts/vectors.py --model {input.model:q} --tokens {input.tokens:q} --output {output:q}"
        " --length {params.settings[length]} --engine {params.settings[engine]}"
        " --threads {threads} 2>&1 | tee -i {log:q} >&2"


rule vectors_external:
    """A third-party retriever's vectors of a collection's passages."""
    input:
        passages="<results>/collections/{collection}/passages.parquet",
        checkpoint=of_system("{model_files}"),
    output:
        directory("<results>/vectors/{system}/{collection}"),
    log:
        "<logs>/vectors_external/{system}.{collection}.log",
    benchmark:
        "<benchmarks>/vectors_external/{system}.{collection}.tsv"
    wildcard_constraints:
        system=of_kind("external"),
    priority: waiting("systems", 0)
    threads: 8
    resources:
        gpu=gpus(1),
        mem_mb=memory_of("vectors_external", gpus(1)),
        runtime=1440,
    params:
        code=code("vectors_external"),
        settings=encoding,
        collection=subpath(input.passages, parent=True),
    shell:
        "workflow/launch {resources.gpu}"
        " workflow/scripts/vectors_external.py --model {params.settings[model]:q} --collection {params.collection:q}"
        " --length {params.settings[length]} --passage-prompt {params.settings[passage_prompt]:q}"
        " --head {params.settings[head]} --engine {params.settings[engine]} --output {output:q} 2>&1 | tee -i {log:q} >&2"


rule search:
    """A retriever's runs over everything that is evaluated, exact."""
    input:
        model="<results>/trained/{system}",
        queries=of_system("<results>/collections/{collection}/queries.parquet"),
        qrels=of_system("<results>/collections/{collection}/qrels.parquet"),  # what they exclude is not found
        vectors=of_system("<results>/vectors/{system}/{collection}") if KEPT else [],
        tokens=[] if KEPT else of_system("<results>/tokens/{start}/{collection}"),
    output:
        expand("<results>/runs/{system}/{target}.parquet", target=TARGETS, allow_missing=True),
    log:
        "<logs>/search/{system}.log",
    benchmark:
        "<benchmarks>/search/{system}.tsv"
    wildcard_constraints:
        system=of_kind("retriever"),
    priority: waiting("systems", 0)
    threads: cores(16)
    resources:
        gpu=gpus(1),
        mem_mb=memory_of("search", gpus(1)),
        runtime=480,
    params:
        code=code("search"),
        settings=searching,
    shell:
        "workflow/launch {resources.gpu}"
        " workflow/scripts/search.py --model {input.model:q} --vectors {input.vectors:q} --tokens {input.tokens:q}"
        " --collections {params.settings[collections]:q} --splits {params.settings[splits]:q}"
        " --lengths {params.settings[lengths]} --outputs {output:q} --depth {params.settings[depth]} --threads {threads} 2>&1 | tee -i {log:q} >&2"


rule search_external:
    """A third-party retriever's runs over everything that is evaluated."""
    input:
        queries=of_system("<results>/collections/{collection}/queries.parquet"),
        qrels=of_system("<results>/collections/{collection}/qrels.parquet"),
        vectors=of_system("<results>/vectors/{system}/{collection}") if KEPT else [],
        passages=[] if KEPT else of_system("<results>/collections/{collection}/passages.parquet"),
        checkpoint=of_system("{model_files}"),
    output:
        expand("<results>/runs/{system}/{target}.parquet", target=TARGETS, allow_missing=True),
    log:
        "<logs>/search_external/{system}.log",
    benchmark:
        "<benchmarks>/search_external/{system}.tsv"
    wildcard_constraints:
        system=of_kind("external"),
    priority: waiting("systems", 0)
    threads: cores(16)
    resources:
        gpu=gpus(1),
        mem_mb=memory_of("search_external", gpus(1)),
        runtime=480,
    params:
        code=code("search_external"),
        settings=searching_external,
    shell:
        "workflow/launch {resources.gpu}"
        " workflow/scripts/search_external.py --model {params.settings[model]:q}"
        " --query-length {params.settings[query_length]} --passage-length {params.settings[passage_length]}"
        " --query-prompt {params.settings[query_prompt]:q} --passage-prompt {params.settings[passage_prompt]:q}"
        " --head {params.settings[head]} --vectors {input.vectors:q} --collections {params.settings[collections]:q}"
        " --splits {params.settings[splits]:q} --lengths {params.settings[lengths]} --outputs {output:q}"
        " --depth {params.settings[depth]} --threads {threads} 2>&1 | tee -i {log:q} >&2"


rule sparsity:
    """The entries of a sparse retriever's vectors, and the cost of a search among them."""
    input:
        model=lambda wildcards: model_of(wildcards.system),
        queries=of_system("<results>/collections/{collection}/queries.parquet"),
        vectors=of_system("<results>/vectors/{system}/{collection}"),
    output:
        "<results>/sparsity/{system}.json",
    log:
        "<logs>/sparsity/{system}.log",
    benchmark:
        "<benchmarks>/sparsity/{system}.tsv"
    wildcard_constraints:
        system=only(systems.sparse(settings)),
    priority: waiting("systems", 0)
    resources:
        mem_mb=memory_of("sparsity"),
        runtime=60,
    params:
        code=code("sparsity"),
        settings=searching_sparse,
    shell:
        "python workflow/scripts/sparsity.py --system {params.settings[system]:q}"
        " --names {params.settings[names]:q} --collections {params.settings[collections]:q}"
        " --splits {params.settings[splits]:q} --lengths {params.settings[lengths]}"
        " --vectors {input.vectors:q} --output {output:q} 2>&1 | tee -i {log:q} >&2"


use rule search as mine with:
    # A retriever's run over training queries: the negatives of the next stage.
    output:
        "<results>/negatives/{system}.{collection}.{split}.parquet",
    log:
        "<logs>/mine/{system}.{collection}.{split}.log",
    benchmark:
        "<benchmarks>/mine/{system}.{collection}.{split}.tsv"


use rule search_external as mine_external with:
    # A third-party retriever's run over training queries.
    output:
        "<results>/negatives/{system}.{collection}.{split}.parquet",
    log:
        "<logs>/mine_external/{system}.{collection}.{split}.log",
    benchmark:
        "<benchmarks>/mine_external/{system}.{collection}.{split}.tsv"


rule rerank:
    """The best passages of another system's runs, in the order of a cross-encoder."""
    input:
        model="<results>/trained/{system}",
        queries=of_system("<results>/collections/{collection}/queries.parquet"),
        tokens=of_system("<results>/tokens/{start}/{collection}"),
        runs=of_system("<results>/runs/{reranks}/{target}.parquet"),
    output:
        expand("<results>/runs/{system}/{target}.parquet", target=TARGETS, allow_missing=True),
    log:
        "<logs>/rerank/{system}.log",
    benchmark:
        "<benchmarks>/rerank/{system}.tsv"
    wildcard_constraints:
        system=of_kind("reranker"),
    priority: waiting("systems", 0)
    threads: network_cores(8, system_rows, "start")
    resources:
        gpu=gpus(1),
        mem_mb=memory_of("rerank", gpus(1)),
        runtime=1440,
    params:
        code=code("rerank"),
        settings=reranking,
    shell:
        "workflow/launch {resources.gpu}"
        " workflow/scripts/rerank.py --model {input.model:q} --collections {params.settings[collections]:q}"
        " --tokens {input.tokens:q} --splits {params.settings[splits]:q} --lengths {params.settings[lengths]}"
        " --runs {input.runs:q} --depth {params.settings[depth]} --outputs {output:q} --threads {threads} 2>&1 | tee -i {log:q} >&2"


rule weights:
    """What each part of a fusion counts: as the config says, or as judged queries choose."""
    input:
        runs=of_system("<results>/runs/{of}/{tuned_run}.parquet"),
        judged=of_system("<results>/collections/{tuned_collection}/qrels.parquet"),
    output:
        "<results>/fusions/{system}.json",
    log:
        "<logs>/weights/{system}.log",
    benchmark:
        "<benchmarks>/weights/{system}.tsv"
    wildcard_constraints:
        system=of_kind("fusion"),
    priority: waiting("systems", 0)
    resources:
        mem_mb=memory_of("weights"),
        runtime=60,
    params:
        code=code("weights"),
        settings=settings_of(weighing),
    shell:
        "python workflow/scripts/weights.py --systems {params.settings[of]:q} --method {params.settings[method]}"
        " --k {params.settings[k]} --weights {params.settings[weights]} --runs {input.runs:q}"
        " --judged {input.judged:q} --tuned {params.settings[tuned]:q} --depth {params.settings[depth]} --output {output:q} 2>&1 | tee -i {log:q} >&2"


rule fuse:
    """The reciprocal ranks or scores of several systems, weighted and summed."""
    input:
        runs=of_system("<results>/runs/{of}/{target}.parquet"),  # target by target
        weights="<results>/fusions/{system}.json",
    output:
        expand("<results>/runs/{system}/{target}.parquet", target=TARGETS, allow_missing=True),
    log:
        "<logs>/fuse/{system}.log",
    benchmark:
        "<benchmarks>/fuse/{system}.tsv"
    wildcard_constraints:
        system=of_kind("fusion"),
    priority: waiting("systems", 0)
    resources:
        mem_mb=memory_of("fuse"),
        runtime=60,
    params:
        code=code("fuse"),
        settings=fusing,
    shell:
        "python workflow/scripts/fuse.py --weights {input.weights:q} --runs {input.runs:q} --outputs {output:q}"
        " --depth {params.settings[depth]} 2>&1 | tee -i {log:q} >&2"


use rule fuse as mine_fusion with:
    # A fusion's run over training queries.
    input:
        runs=of_system("<results>/negatives/{of}.{collection}.{split}.parquet"),
        weights="<results>/fusions/{system}.json",
    output:
        "<results>/negatives/{system}.{collection}.{split}.parquet",
    log:
        "<logs>/mine_fusion/{system}.{collection}.{split}.log",
    benchmark:
        "<benchmarks>/mine_fusion/{system}.{collection}.{split}.tsv"
    resources:
        mem_mb=memory_of("mine_fusion"),
        runtime=60,


rule read_run:
    """The runs of somebody's system, from TREC's text."""
    input:
        files=run_files,
        collections=of_system("<results>/collections/{collection}/queries.parquet"),
    output:
        expand("<results>/runs/{system}/{target}.parquet", target=TARGETS, allow_missing=True),
    log:
        "<logs>/read_run/{system}.log",
    benchmark:
        "<benchmarks>/read_run/{system}.tsv"
    wildcard_constraints:
        system=of_kind("run"),
    priority: waiting("systems", 0)
    resources:
        mem_mb=16000,
        runtime=60,
    params:
        code=code("read_run"),
        settings=reading,
    shell:
        "python workflow/scripts/read_run.py --files {input.files:q} --collections {params.settings[collections]:q}"
        " --splits {params.settings[splits]:q} --outputs {output:q} --depth {params.settings[depth]} 2>&1 | tee -i {log:q} >&2"


use rule read_run as mine_run with:
    # Somebody's run over training queries: negatives, or a teacher.
    output:
        "<results>/negatives/{system}.{collection}.{split}.parquet",
    log:
        "<logs>/mine_run/{system}.{collection}.{split}.log",
    benchmark:
        "<benchmarks>/mine_run/{system}.{collection}.{split}.tsv"


rule export:
    """A run as TREC text, on request: ./run results/trec/SYSTEM/COLLECTION.SPLIT.run."""
    input:
        run="<results>/runs/{system}/{collection}.{split}.parquet",
        collection=expand(
            "<results>/collections/{collection}/{file}", file=COLLECTION_FILES, allow_missing=True
        ),
    output:
        "<results>/trec/{system}/{collection}.{split}.run",
    log:
        "<logs>/export/{system}.{collection}.{split}.log",
    wildcard_constraints:
        split=only({split for _, split in systems.targets(settings)}),
    resources:
        mem_mb=8000,
        runtime=60,
    params:
        code=code("export"),
        collection=folder("collection"),
    shell:
        "python workflow/scripts/export.py --run {input.run:q} --collection {params.collection:q}"
        " --split {wildcards.split:q} --system {wildcards.system:q} --output {output:q} 2>&1 | tee -i {log:q} >&2"
