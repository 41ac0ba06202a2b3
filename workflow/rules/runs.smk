# Every system's runs: over training queries (negatives for the next stage) and over everything that is evaluated.


rule vectors:
    """A retriever's vectors of a collection's passages."""
    input:
        unpack(inputs("vectors")),
    output:
        directory(graph.vectors("{system}", "{collection}")),
    log:
        graph.path("logs/vectors/{system}.{collection}.log"),
    benchmark:
        graph.path("benchmarks/vectors/{system}.{collection}.tsv")
    wildcard_constraints:
        system=only(graph.systems("retriever")),
    priority: waiting("vectors")
    conda:
        environment
    threads: network_cores(8, graph.start_of)
    resources:
        gpu=gpus(1),
        mem_mb=32000,
        runtime=1440,
    params:
        *code("vectors"),
        length=setting("vectors", "length"),
    shell:
        "workflow/launch {resources.gpu}"
        " workflow/scripts/vectors.py --model {input.model:q} --tokens {input.tokens:q} --output {output:q}"
        " --length {params.length} --threads {threads} 2>&1 | tee -i {log:q} >&2"


rule vectors_external:
    """A foreign retriever's vectors of a collection's passages."""
    input:
        unpack(inputs("vectors_external")),
    output:
        directory(graph.vectors("{system}", "{collection}")),
    log:
        graph.path("logs/vectors_external/{system}.{collection}.log"),
    benchmark:
        graph.path("benchmarks/vectors_external/{system}.{collection}.tsv")
    wildcard_constraints:
        system=only(graph.systems("external")),
    priority: waiting("vectors_external")
    conda:
        environment
    threads: 8
    resources:
        gpu=gpus(1),
        mem_mb=32000,
        runtime=1440,
    params:
        *code("vectors_external"),
        collection=folder("passages"),
        model=setting("vectors_external", "model"),
        query_length=setting("vectors_external", "query_length"),
        passage_length=setting("vectors_external", "passage_length"),
    shell:
        "workflow/launch {resources.gpu}"
        " workflow/scripts/vectors_external.py --model {params.model:q} --collection {params.collection:q}"
        " --query-length {params.query_length} --passage-length {params.passage_length} --output {output:q}"
        " 2>&1 | tee -i {log:q} >&2"


rule mine:
    """A retriever's run over training queries: the negatives of the next stage."""
    input:
        unpack(inputs("mine")),
    output:
        graph.negatives("{system}", "{collection}", "{split}"),
    log:
        graph.path("logs/mine/{system}.{collection}.{split}.log"),
    benchmark:
        graph.path("benchmarks/mine/{system}.{collection}.{split}.tsv")
    wildcard_constraints:
        system=only(graph.systems("retriever")),
    priority: waiting("mine")
    conda:
        environment
    threads: cores(16)
    resources:
        gpu=gpus(1),
        mem_mb=64000,
        runtime=480,
    params:
        *code("mine"),
        passages=lambda wildcards, output: over(wildcards.system, [wildcards.collection]),
        collection=folder("queries"),
        splits=setting("mine", "splits"),
        lengths=setting("mine", "lengths"),
        depth=setting("mine", "depth"),
    shell:
        "workflow/launch {resources.gpu}"
        " workflow/scripts/search.py --model {input.model:q} {params.passages:q}"
        " --collections {params.collection:q} --splits {params.splits:q} --lengths {params.lengths}"
        " --outputs {output:q} --depth {params.depth} --threads {threads} 2>&1 | tee -i {log:q} >&2"


rule search:
    """A retriever's runs over everything that is evaluated, exact."""
    input:
        unpack(inputs("search")),
    output:
        graph.runs("{system}"),
    log:
        graph.path("logs/search/{system}.log"),
    benchmark:
        graph.path("benchmarks/search/{system}.tsv")
    wildcard_constraints:
        system=only(graph.systems("retriever")),
    priority: waiting("search")
    conda:
        environment
    threads: cores(16)
    resources:
        gpu=gpus(1),
        mem_mb=64000,
        runtime=480,
    params:
        *code("search"),
        passages=lambda wildcards, output: over(wildcards.system, [each for each, _ in graph.targets()]),
        collections=targets(lambda system, collection: graph.collection(collection)),
        splits=setting("search", "splits"),
        lengths=setting("search", "lengths"),
        depth=setting("search", "depth"),
    shell:
        "workflow/launch {resources.gpu}"
        " workflow/scripts/search.py --model {input.model:q} {params.passages:q}"
        " --collections {params.collections:q} --splits {params.splits:q} --lengths {params.lengths}"
        " --outputs {output:q} --depth {params.depth} --threads {threads} 2>&1 | tee -i {log:q} >&2"


rule mine_external:
    """A foreign retriever's run over training queries."""
    input:
        unpack(inputs("mine_external")),
    output:
        graph.negatives("{system}", "{collection}", "{split}"),
    log:
        graph.path("logs/mine_external/{system}.{collection}.{split}.log"),
    benchmark:
        graph.path("benchmarks/mine_external/{system}.{collection}.{split}.tsv")
    wildcard_constraints:
        system=only(graph.systems("external")),
    priority: waiting("mine_external")
    conda:
        environment
    threads: cores(16)
    resources:
        gpu=gpus(1),
        mem_mb=64000,
        runtime=480,
    params:
        *code("mine_external"),
        passages=lambda wildcards, output: over(wildcards.system, [wildcards.collection]),
        collection=folder("queries"),
        splits=setting("mine_external", "splits"),
        lengths=setting("mine_external", "lengths"),
        depth=setting("mine_external", "depth"),
        model=setting("mine_external", "model"),
        query_length=setting("mine_external", "query_length"),
        passage_length=setting("mine_external", "passage_length"),
    shell:
        "workflow/launch {resources.gpu}"
        " workflow/scripts/search_external.py --model {params.model:q} --query-length {params.query_length}"
        " --passage-length {params.passage_length} {params.passages:q} --collections {params.collection:q}"
        " --splits {params.splits:q} --lengths {params.lengths} --outputs {output:q} --depth {params.depth}"
        " --threads {threads} 2>&1 | tee -i {log:q} >&2"


rule search_external:
    """A foreign retriever's runs over everything that is evaluated."""
    input:
        unpack(inputs("search_external")),
    output:
        graph.runs("{system}"),
    log:
        graph.path("logs/search_external/{system}.log"),
    benchmark:
        graph.path("benchmarks/search_external/{system}.tsv")
    wildcard_constraints:
        system=only(graph.systems("external")),
    priority: waiting("search_external")
    conda:
        environment
    threads: cores(16)
    resources:
        gpu=gpus(1),
        mem_mb=64000,
        runtime=480,
    params:
        *code("search_external"),
        passages=lambda wildcards, output: over(wildcards.system, [each for each, _ in graph.targets()]),
        collections=targets(lambda system, collection: graph.collection(collection)),
        splits=setting("search_external", "splits"),
        lengths=setting("search_external", "lengths"),
        depth=setting("search_external", "depth"),
        model=setting("search_external", "model"),
        query_length=setting("search_external", "query_length"),
        passage_length=setting("search_external", "passage_length"),
    shell:
        "workflow/launch {resources.gpu}"
        " workflow/scripts/search_external.py --model {params.model:q} --query-length {params.query_length}"
        " --passage-length {params.passage_length} {params.passages:q} --collections {params.collections:q}"
        " --splits {params.splits:q} --lengths {params.lengths} --outputs {output:q} --depth {params.depth}"
        " --threads {threads} 2>&1 | tee -i {log:q} >&2"


rule rerank:
    """The best passages of another system's runs, in the order of a cross-encoder."""
    input:
        unpack(inputs("rerank")),
    output:
        graph.runs("{system}"),
    log:
        graph.path("logs/rerank/{system}.log"),
    benchmark:
        graph.path("benchmarks/rerank/{system}.tsv")
    wildcard_constraints:
        system=only(graph.systems("reranker")),
    priority: waiting("rerank")
    conda:
        environment
    threads: network_cores(8, graph.start_of)
    resources:
        gpu=gpus(1),
        mem_mb=32000,
        runtime=1440,
    params:
        *code("rerank"),
        collections=targets(lambda system, collection: graph.collection(collection)),
        tokens=targets(lambda system, collection: graph.tokens(graph.start_of(system), collection)),
        splits=setting("rerank", "splits"),
        lengths=setting("rerank", "lengths"),
        depth=setting("rerank", "depth"),
    shell:
        "workflow/launch {resources.gpu}"
        " workflow/scripts/rerank.py --model {input.model:q} --collections {params.collections:q}"
        " --tokens {params.tokens:q} --splits {params.splits:q} --lengths {params.lengths} --runs {input.runs:q}"
        " --depth {params.depth} --outputs {output:q} --threads {threads} 2>&1 | tee -i {log:q} >&2"


rule fuse:
    """The reciprocal ranks of several systems, summed."""
    input:
        unpack(inputs("fuse")),
    output:
        graph.runs("{system}"),
    log:
        graph.path("logs/fuse/{system}.log"),
    benchmark:
        graph.path("benchmarks/fuse/{system}.tsv")
    wildcard_constraints:
        system=only(graph.systems("fusion")),
    priority: waiting("fuse")
    conda:
        environment
    resources:
        mem_mb=8000,
        runtime=60,
    params:
        *code("fuse"),
        k=setting("fuse", "k"),
        depth=setting("fuse", "depth"),
    shell:
        "python workflow/scripts/fuse.py --runs {input.runs:q} --outputs {output:q} --k {params.k}"
        " --depth {params.depth} 2>&1 | tee -i {log:q} >&2"


rule export:
    """A run as TREC text, on request: ./run results/trec/SYSTEM/COLLECTION.SPLIT.run."""
    input:
        unpack(inputs("export")),
    output:
        graph.path("trec/{system}/{collection}.{split}.run"),
    log:
        graph.path("logs/export/{system}.{collection}.{split}.log"),
    wildcard_constraints:
        split=only({split for _, split in graph.targets()}),
    conda:
        environment
    resources:
        mem_mb=8000,
        runtime=60,
    params:
        *code("export"),
        collection=folder("collection"),
    shell:
        "python workflow/scripts/export.py --run {input.run:q} --collection {params.collection:q}"
        " --split {wildcards.split:q} --system {wildcards.system:q} --output {output:q} 2>&1 | tee -i {log:q} >&2"
