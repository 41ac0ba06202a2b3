# BM25: the first system, whose run over the training queries gives stage 1 its negatives.


rule index_bm25:
    """An inverted index of titles and texts."""
    input:
        unpack(inputs("index_bm25")),
    output:
        directory(graph.index("{collection}")),
    log:
        graph.path("logs/index_bm25/{collection}.log"),
    benchmark:
        graph.path("benchmarks/index_bm25/{collection}.tsv")
    priority: waiting("index_bm25")
    conda:
        environment
    threads: cores(16)
    resources:
        mem_mb=16000,
        runtime=120,
    params:
        *code("index_bm25"),
        collection=folder("passages"),
    shell:
        "python workflow/scripts/index_bm25.py --collection {params.collection:q} --output {output:q}"
        " --threads {threads} 2>&1 | tee -i {log:q} >&2"


rule mine_bm25:
    """BM25's run over training queries: the negatives of stage 1."""
    input:
        unpack(inputs("mine_bm25")),
    output:
        graph.negatives("{system}", "{collection}", "{split}"),
    log:
        graph.path("logs/mine_bm25/{system}.{collection}.{split}.log"),
    benchmark:
        graph.path("benchmarks/mine_bm25/{system}.{collection}.{split}.tsv")
    wildcard_constraints:
        system=only(graph.systems("bm25")),
    priority: waiting("mine_bm25")
    conda:
        environment
    threads: cores(16)
    resources:
        mem_mb=16000,
        runtime=240,
    params:
        *code("mine_bm25"),
        collection=folder("queries"),
        splits=setting("mine_bm25", "splits"),
        depth=setting("mine_bm25", "depth"),
        k1=setting("mine_bm25", "k1"),
        b=setting("mine_bm25", "b"),
        triples=setting("mine_bm25", "triples"),
    shell:
        "python workflow/scripts/mine_bm25.py --index {input.indexes:q} --collection {params.collection:q}"
        " --split {params.splits:q} --output {output:q} --depth {params.depth} --k1 {params.k1} --b {params.b}"
        " --triples {params.triples:q} --threads {threads} 2>&1 | tee -i {log:q} >&2"


rule search_bm25:
    """BM25's runs over everything that is evaluated."""
    input:
        unpack(inputs("search_bm25")),
    output:
        graph.runs("{system}"),
    log:
        graph.path("logs/search_bm25/{system}.log"),
    benchmark:
        graph.path("benchmarks/search_bm25/{system}.tsv")
    wildcard_constraints:
        system=only(graph.systems("bm25")),
    priority: waiting("search_bm25")
    conda:
        environment
    threads: cores(16)
    resources:
        mem_mb=16000,
        runtime=240,
    params:
        *code("search_bm25"),
        indexes=targets(lambda system, collection: graph.index(collection)),
        collections=targets(lambda system, collection: graph.collection(collection)),
        splits=setting("search_bm25", "splits"),
        depth=setting("search_bm25", "depth"),
        k1=setting("search_bm25", "k1"),
        b=setting("search_bm25", "b"),
    shell:
        "python workflow/scripts/search_bm25.py --indexes {params.indexes:q} --collections {params.collections:q}"
        " --splits {params.splits:q} --outputs {output:q} --depth {params.depth} --k1 {params.k1} --b {params.b}"
        " --threads {threads} 2>&1 | tee -i {log:q} >&2"
