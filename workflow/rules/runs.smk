# The runs of every system: over training queries, as negatives of the next stage, and over all
# evaluated queries.


weighing = {
    name: {
        "systems": row["of"],
        "method": row["method"],
        "k": row["k"],
        "weights": row["weights"],
        "tuned": row["tuned"],
        "depth": settings.evaluation.depth,
    }
    for name, row in tables["system"].items()
    if row["kind"] == "fusion"
}


rule vectors:
    """The vectors of a collection's passages by a trained retriever."""
    input:
        model="<results>/trained/{system}",
        tokens=of("<results>/tokens/{system.start}/{collection}"),
    output:
        directory("<results>/vectors/{system}/{collection}"),
    log:
        "<logs>/vectors/{system}.{collection}.log",
    benchmark:
        "<benchmarks>/vectors/{system}.{collection}.tsv"
    wildcard_constraints:
        system=of_kind("retriever"),
    priority: waiting("system")
    conda:
        environment
    threads: network_cores("vectors", 8)
    resources:
        gpu=gpus_of("vectors"),
        mem_mb=memory_of("vectors"),
        runtime=minutes_of("vectors"),
    params:
        code=code("vectors"),
        settings=encoding,
        launch=launch,
    shell:
        "{params.launch} --gpus {resources.gpu} scripts/vectors.py --model {input.model:q}"
        " --tokens {input.tokens:q} {params.settings} --output {output:q} --threads {threads}"
        " 2>&1 | tee -i {log:q} >&2"


rule vectors_external:
    """The vectors of a collection's passages by a third-party retriever."""
    input:
        passages="<results>/collections/{collection}/passages.parquet",
        checkpoint=files_of("{system.model_files}"),
    output:
        directory("<results>/vectors/{system}/{collection}"),
    log:
        "<logs>/vectors_external/{system}.{collection}.log",
    benchmark:
        "<benchmarks>/vectors_external/{system}.{collection}.tsv"
    wildcard_constraints:
        system=of_kind("external"),
    priority: waiting("system")
    conda:
        environment
    threads: 8
    resources:
        gpu=gpus_of("vectors_external"),
        mem_mb=memory_of("vectors_external"),
        runtime=minutes_of("vectors_external"),
    params:
        code=code("vectors_external"),
        settings=encoding_external,
        launch=launch,
        collection=subpath(input.passages, parent=True),
    shell:
        "{params.launch} --gpus {resources.gpu} scripts/vectors_external.py"
        " --collection {params.collection:q} {params.settings} --output {output:q}"
        " 2>&1 | tee -i {log:q} >&2"


rule vectors_head:
    """The vectors of one head of a unified retriever, as links."""
    input:
        of("<results>/vectors/{system.of}/{collection}"),
    output:
        directory("<results>/vectors/{system}/{collection}"),
    log:
        "<logs>/vectors_head/{system}.{collection}.log",
    benchmark:
        "<benchmarks>/vectors_head/{system}.{collection}.tsv"
    wildcard_constraints:
        system=of_kind("head"),
    priority: waiting("system")
    conda:
        environment
    threads: cores(8)
    resources:
        mem_mb=memory_of("vectors_head"),
        runtime=minutes_of("vectors_head"),
    params:
        code=code("vectors_head"),
        settings=lambda wildcards: Options(chosen(wildcards, "uses", "engine")),
        launch=launch,
    shell:
        "{params.launch} scripts/vectors_head.py --vectors {input:q} {params.settings}"
        " --output {output:q} --threads {threads}"
        " 2>&1 | tee -i {log:q} >&2"


rule search:
    """A retriever's runs over all evaluated queries, by exact search."""
    input:
        model=of("<results>/trained/{system.folder}"),
        about=of("<results>/collections/{job.collection}/about.json"),
        queries=of("<results>/collections/{job.collection}/queries.parquet"),
        qrels=of("<results>/collections/{job.collection}/qrels.parquet"),  # with excluded passages
        vectors=branch(keeps_vectors, then=of("<results>/vectors/{system}/{job.collection}")),
        tokens=branch(
            keeps_vectors,
            then=[],
            otherwise=of("<results>/tokens/{system.start}/{job.collection}"),
        ),
        candidates=candidates,
    output:
        expand("<results>/runs/{system}/{target}.parquet", target=TARGETS, allow_missing=True),
    log:
        "<logs>/search/{system}.log",
    benchmark:
        "<benchmarks>/search/{system}.tsv"
    wildcard_constraints:
        system=of_kind("retriever", "head"),
    priority: waiting("system")
    conda:
        environment
    threads: cores(16)
    resources:
        gpu=gpus_of("search"),
        mem_mb=memory_of("search"),
        runtime=minutes_of("search"),
    params:
        code=code("search"),
        settings=searching,
        launch=launch,
        collections=folders("queries"),
    shell:
        "{params.launch} --gpus {resources.gpu} scripts/search.py --model {input.model:q}"
        " --vectors {input.vectors:q} --tokens {input.tokens:q} --candidates {input.candidates:q}"
        " --collections {params.collections:q} {params.settings}"
        " --outputs {output:q} --threads {threads}"
        " 2>&1 | tee -i {log:q} >&2"


rule search_external:
    """A third-party retriever's runs over all evaluated queries."""
    input:
        about=of("<results>/collections/{job.collection}/about.json"),
        queries=of("<results>/collections/{job.collection}/queries.parquet"),
        qrels=of("<results>/collections/{job.collection}/qrels.parquet"),
        vectors=branch(KEPT, then=of("<results>/vectors/{system}/{job.collection}")),
        passages=branch(
            not KEPT, then=of("<results>/collections/{job.collection}/passages.parquet")
        ),
        checkpoint=files_of("{system.model_files}"),
        candidates=candidates,
    output:
        expand("<results>/runs/{system}/{target}.parquet", target=TARGETS, allow_missing=True),
    log:
        "<logs>/search_external/{system}.log",
    benchmark:
        "<benchmarks>/search_external/{system}.tsv"
    wildcard_constraints:
        system=of_kind("external"),
    priority: waiting("system")
    conda:
        environment
    threads: cores(16)
    resources:
        gpu=gpus_of("search_external"),
        mem_mb=memory_of("search_external"),
        runtime=minutes_of("search_external"),
    params:
        code=code("search_external"),
        settings=searching_external,
        launch=launch,
        collections=folders("queries"),
    shell:
        "{params.launch} --gpus {resources.gpu} scripts/search_external.py"
        " --vectors {input.vectors:q} --collections {params.collections:q}"
        " --candidates {input.candidates:q} {params.settings} --outputs {output:q}"
        " --threads {threads}"
        " 2>&1 | tee -i {log:q} >&2"


rule sparsity:
    """The number of entries in a sparse system's vectors, and the cost of searching them."""
    input:
        model=trained_folder,
        queries=of("<results>/collections/{job.collection}/queries.parquet"),
        vectors=of("<results>/vectors/{system}/{job.collection}"),
    output:
        "<results>/sparsity/{system}.json",
    log:
        "<logs>/sparsity/{system}.log",
    benchmark:
        "<benchmarks>/sparsity/{system}.tsv"
    wildcard_constraints:
        system=only(systems.sparse(settings)),
    priority: waiting("system")
    conda:
        environment
    resources:
        mem_mb=memory_of("sparsity"),
        runtime=minutes_of("sparsity"),
    params:
        code=code("sparsity"),
        settings=measuring_sparsity,
        launch=launch,
        collections=folders("queries"),
    shell:
        "{params.launch} scripts/sparsity.py --model {input.model:q} --vectors {input.vectors:q}"
        " --collections {params.collections:q} {params.settings} --output {output:q}"
        " 2>&1 | tee -i {log:q} >&2"


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
    """The best passages of another system's runs, reordered by a cross-encoder."""
    input:
        model="<results>/trained/{system}",
        queries=of("<results>/collections/{job.collection}/queries.parquet"),
        tokens=of("<results>/tokens/{system.start}/{job.collection}"),
        runs=of("<results>/runs/{system.reranks}/{job.target}.parquet"),
    output:
        expand("<results>/runs/{system}/{target}.parquet", target=TARGETS, allow_missing=True),
    log:
        "<logs>/rerank/{system}.log",
    benchmark:
        "<benchmarks>/rerank/{system}.tsv"
    wildcard_constraints:
        system=of_kind("reranker"),
    priority: waiting("system")
    conda:
        environment
    threads: network_cores("rerank", 8)
    resources:
        gpu=gpus_of("rerank"),
        mem_mb=memory_of("rerank"),
        runtime=minutes_of("rerank"),
    params:
        code=code("rerank"),
        settings=reranking,
        launch=launch,
        collections=folders("queries"),
    shell:
        "{params.launch} --gpus {resources.gpu} scripts/rerank.py --model {input.model:q}"
        " --tokens {input.tokens:q} --runs {input.runs:q} --collections {params.collections:q}"
        " {params.settings} --outputs {output:q} --threads {threads}"
        " 2>&1 | tee -i {log:q} >&2"


rule weights:
    """The weights of a fusion: from the config, or tuned on judged queries."""
    input:
        runs=of("<results>/runs/{system.of}/{system.tuned_run}.parquet"),
        judged=of("<results>/collections/{system.tuned_collection}/qrels.parquet"),
    output:
        "<results>/fusions/{system}.json",
    log:
        "<logs>/weights/{system}.log",
    benchmark:
        "<benchmarks>/weights/{system}.tsv"
    wildcard_constraints:
        system=of_kind("fusion"),
    priority: waiting("system")
    conda:
        environment
    resources:
        mem_mb=memory_of("weights"),
        runtime=minutes_of("weights"),
    params:
        code=code("weights"),
        settings=entry("system", weighing, Options),
        launch=launch,
    shell:
        "{params.launch} scripts/weights.py --runs {input.runs:q} --judged {input.judged:q}"
        " {params.settings} --output {output:q}"
        " 2>&1 | tee -i {log:q} >&2"


rule fuse:
    """The reciprocal ranks or scores of several systems, weighted and summed."""
    input:
        runs=of("<results>/runs/{system.of}/{job.target}.parquet"),  # target by target
        weights="<results>/fusions/{system}.json",
    output:
        expand("<results>/runs/{system}/{target}.parquet", target=TARGETS, allow_missing=True),
    log:
        "<logs>/fuse/{system}.log",
    benchmark:
        "<benchmarks>/fuse/{system}.tsv"
    wildcard_constraints:
        system=of_kind("fusion"),
    priority: waiting("system")
    conda:
        environment
    resources:
        mem_mb=memory_of("fuse"),
        runtime=minutes_of("fuse"),
    params:
        code=code("fuse"),
        settings=fusing,
        launch=launch,
    shell:
        "{params.launch} scripts/fuse.py --weights {input.weights:q} --runs {input.runs:q}"
        " {params.settings} --outputs {output:q}"
        " 2>&1 | tee -i {log:q} >&2"


use rule fuse as mine_fusion with:
    # A fusion's run over training queries.
    input:
        runs=of("<results>/negatives/{system.of}.{job.collection}.{split}.parquet"),
        weights="<results>/fusions/{system}.json",
    output:
        "<results>/negatives/{system}.{collection}.{split}.parquet",
    log:
        "<logs>/mine_fusion/{system}.{collection}.{split}.log",
    benchmark:
        "<benchmarks>/mine_fusion/{system}.{collection}.{split}.tsv"
    resources:
        mem_mb=memory_of("mine_fusion"),
        runtime=minutes_of("mine_fusion"),


rule search_feedback:
    """A dense system's runs with vector feedback, over all evaluated queries."""
    input:
        model=of("<results>/trained/{system.trained}"),
        checkpoint=files_of("{system.model_files}"),
        queries=of("<results>/collections/{job.collection}/queries.parquet"),
        qrels=of("<results>/collections/{job.collection}/qrels.parquet"),
        vectors=of("<results>/vectors/{system.of}/{job.collection}"),
        runs=of("<results>/runs/{system.of}/{job.target}.parquet"),
    output:
        expand("<results>/runs/{system}/{target}.parquet", target=TARGETS, allow_missing=True),
    log:
        "<logs>/search_feedback/{system}.log",
    benchmark:
        "<benchmarks>/search_feedback/{system}.tsv"
    wildcard_constraints:
        system=of_kind("feedback"),
    priority: waiting("system")
    conda:
        environment
    threads: cores(16)
    resources:
        gpu=gpus_of("search_feedback"),
        mem_mb=memory_of("search_feedback"),
        runtime=minutes_of("search_feedback"),
    params:
        code=code("search_feedback", query_encoder),
        settings=searching_feedback,
        launch=launch,
        collections=folders("queries"),
    shell:
        "{params.launch} --gpus {resources.gpu} scripts/search_feedback.py --model {input.model:q}"
        " --vectors {input.vectors:q} --runs {input.runs:q}"
        " --collections {params.collections:q} {params.settings}"
        " --outputs {output:q} --threads {threads}"
        " 2>&1 | tee -i {log:q} >&2"


use rule search_feedback as mine_feedback with:
    # A dense system's run with vector feedback over training queries.
    input:
        model=of("<results>/trained/{system.trained}"),
        checkpoint=files_of("{system.model_files}"),
        queries=of("<results>/collections/{job.collection}/queries.parquet"),
        qrels=of("<results>/collections/{job.collection}/qrels.parquet"),
        vectors=of("<results>/vectors/{system.of}/{job.collection}"),
        runs=of("<results>/negatives/{system.of}.{job.collection}.{split}.parquet"),
    output:
        "<results>/negatives/{system}.{collection}.{split}.parquet",
    log:
        "<logs>/mine_feedback/{system}.{collection}.{split}.log",
    benchmark:
        "<benchmarks>/mine_feedback/{system}.{collection}.{split}.tsv"


rule read_run:
    """The runs of a third-party system, from TREC files."""
    input:
        files=run_files,
        collections=of("<results>/collections/{job.collection}/queries.parquet"),
    output:
        expand("<results>/runs/{system}/{target}.parquet", target=TARGETS, allow_missing=True),
    log:
        "<logs>/read_run/{system}.log",
    benchmark:
        "<benchmarks>/read_run/{system}.tsv"
    wildcard_constraints:
        system=of_kind("run"),
    priority: waiting("system")
    conda:
        environment
    resources:
        mem_mb=16000,
        runtime=60,
    params:
        code=code("read_run"),
        settings=reading,
        launch=launch,
        collections=folders("collections"),
    shell:
        "{params.launch} scripts/read_run.py --files {input.files:q}"
        " --collections {params.collections:q} {params.settings}"
        " --outputs {output:q}"
        " 2>&1 | tee -i {log:q} >&2"


use rule read_run as mine_run with:
    # A third-party run over training queries: negatives, or a teacher.
    output:
        "<results>/negatives/{system}.{collection}.{split}.parquet",
    log:
        "<logs>/mine_run/{system}.{collection}.{split}.log",
    benchmark:
        "<benchmarks>/mine_run/{system}.{collection}.{split}.tsv"


rule export:
    """A run as a TREC file with its metadata: ./run results/trec/SYSTEM/COLLECTION.SPLIT.run."""
    input:
        run="<results>/runs/{system}/{collection}.{split}.parquet",
        collection=expand(
            "<results>/collections/{collection}/{file}", file=COLLECTION_FILES, allow_missing=True
        ),
    output:
        run="<results>/trec/{system}/{collection}.{split}.run",
        metadata="<results>/trec/{system}/{collection}.{split}.ir_metadata.yaml",
    log:
        "<logs>/export/{system}.{collection}.{split}.log",
    wildcard_constraints:
        split=only({split for _, split in systems.targets(settings)}),
    conda:
        environment
    resources:
        mem_mb=8000,
        runtime=60,
    params:
        code=code("export"),
        settings=lambda wildcards: plain(trec(settings, **dict(wildcards))),
        launch=launch,
        collection=folder("collection"),
    shell:
        "{params.launch} scripts/export.py --run {input.run:q} --collection {params.collection:q}"
        " --split {wildcards.split:q} --system {wildcards.system:q} --facts {params.settings:q}"
        " --output {output.run:q} --metadata {output.metadata:q} 2>&1 | tee -i {log:q} >&2"
