# BM25, the first system: its run over training queries gives stage 1 its negatives.


rule index_bm25:
    """An inverted index of titles and texts."""
    input:
        passages="<results>/collections/{collection}/passages.parquet",
    output:
        directory("<results>/bm25/{collection}"),
    log:
        "<logs>/index_bm25/{collection}.log",
    benchmark:
        "<benchmarks>/index_bm25/{collection}.tsv"
    priority: 50
    conda:
        environment
    threads: cores(16)
    resources:
        mem_mb=memory_of("index_bm25"),
        runtime=minutes_of("index_bm25"),
    params:
        code=code("index_bm25"),
        launch=launch,
        collection=subpath(input.passages, parent=True),
    shell:
        "{params.launch} scripts/index_bm25.py --collection {params.collection:q}"
        " --folder {output:q} --threads {threads}"
        " 2>&1 | tee -i {log:q} >&2"


rule search_bm25:
    """BM25's runs over all evaluated queries."""
    input:
        indexes=bm25_indexes,
        about=of("<results>/collections/{job.collection}/about.json"),
        queries=of("<results>/collections/{job.collection}/queries.parquet"),
        qrels=of("<results>/collections/{job.collection}/qrels.parquet"),  # with excluded passages
    output:
        expand("<results>/runs/{system}/{target}.parquet", target=TARGETS, allow_missing=True),
    log:
        "<logs>/search_bm25/{system}.log",
    benchmark:
        "<benchmarks>/search_bm25/{system}.tsv"
    wildcard_constraints:
        system=of_kind("bm25"),
    priority: waiting("system")
    conda:
        environment
    threads: cores(16)
    resources:
        mem_mb=memory_of("search_bm25"),
        runtime=minutes_of("search_bm25"),
    params:
        code=code("search_bm25"),
        settings=searching_bm25,
        launch=launch,
        collections=folders("queries"),
    shell:
        "{params.launch} scripts/search_bm25.py --indexes {input.indexes:q}"
        " --collections {params.collections:q} {params.settings}"
        " --outputs {output:q} --threads {threads}"
        " 2>&1 | tee -i {log:q} >&2"


use rule search_bm25 as mine_bm25 with:
    # BM25's run over training queries: the negatives of stage 1.
    output:
        "<results>/negatives/{system}.{collection}.{split}.parquet",
    log:
        "<logs>/mine_bm25/{system}.{collection}.{split}.log",
    benchmark:
        "<benchmarks>/mine_bm25/{system}.{collection}.{split}.tsv"
