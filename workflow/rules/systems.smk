# A system ranks passages for queries. Its runs are in <results>/runs/{system}/{part}, one file per
# collection and split: {part} is `evaluated`, or COLLECTION.SPLIT, the queries on which a stage
# trains; their runs give the negatives of the stage.


rule bm25:
    """BM25's runs."""
    input:
        indexes=lambda wildcards: [
            f"<results>/bm25/{settings.systems[wildcards.system].indexed(collection)}"
            for collection in dict.fromkeys(collection for collection, _ in targets(wildcards))
        ],
        collections=on_targets("<results>/collections/{collection}/{file}"),
    output:
        directory("<results>/runs/{system}/{part}"),
    log:
        "<logs>/bm25/{system}.{part}.log",
    benchmark:
        "<benchmarks>/bm25/{system}.{part}.tsv"
    wildcard_constraints:
        system=of_kind("bm25"),
    conda:
        environment
    threads: cores
    params:
        code=code("bm25"),
        settings=lambda wildcards: searching(wildcards, **chosen(wildcards, "k1", "b")),
    script:
        "../scripts/bm25.py"


rule encode:
    """The vectors of a collection's passages; of one head, links to those of both."""
    input:
        model=of("<results>/trained/{system.network}"),
        checkpoint=files_of("{system.model_files}"),
        collection=of("<results>/collections/{collection}/{file}"),
        tokens=of("<results>/tokens/{system.start}/{collection}"),
        vectors=of("<results>/vectors/{system.halved}/{collection}"),
    output:
        directory("<results>/vectors/{system}/{collection}"),
    log:
        "<logs>/encode/{system}.{collection}.log",
    benchmark:
        "<benchmarks>/encode/{system}.{collection}.tsv"
    wildcard_constraints:
        system=of_kind("retriever", "external", "head"),
    conda:
        environment
    threads: network_cores
    resources:
        gpu=gpus_of_encoding,
        runtime=1440,
    params:
        code=code("encode", module_of),
        contents=contents_of("{system.model_files}"),
        settings=lambda wildcards: {
            "encoder": {
                "encoded_by": settings.systems[wildcards.system].encoded_by,
                **chosen(wildcards, "model", "head", "passage_prompt", "uses"),
            },
            "length": settings.evaluation.lengths.get(wildcards.collection)
            or tables["system"][wildcards.system].get("passage_length", 0),
            **chosen(wildcards, "engine", "k1", "b"),
        },
    script:
        "../scripts/encode.py"


rule search:
    """The runs of a system with vectors, among all passages or candidates."""
    input:
        model=of("<results>/trained/{system.network}"),
        checkpoint=files_of("{system.model_files}"),
        collections=on_targets("<results>/collections/{collection}/{file}"),
        vectors=on_targets("<results>/vectors/{system.vectors}/{collection}"),
        tokens=on_targets("<results>/tokens/{system.encoded}/{collection}"),
        candidates=of("<results>/runs/{system.candidates}/{part}"),
    output:
        directory("<results>/runs/{system}/{part}"),
    log:
        "<logs>/search/{system}.{part}.log",
    benchmark:
        "<benchmarks>/search/{system}.{part}.tsv"
    wildcard_constraints:
        system=of_kind("retriever", "external", "head"),
    conda:
        environment
    threads: cores
    resources:
        gpu=gpus(1),
        mem_mb=memory(16000, times=1),
        runtime=1440,
    params:
        code=code("search", module_of),
        contents=contents_of("{system.model_files}"),
        settings=searching_vectors,
    script:
        "../scripts/search.py"


rule rerank:
    """The best passages of another system's runs, reordered by a cross-encoder."""
    input:
        model="<results>/trained/{system}",
        collections=on_targets("<results>/collections/{collection}/{file}"),
        tokens=on_targets("<results>/tokens/{system.start}/{collection}"),
        runs=of("<results>/runs/{system.reranks}/{part}"),
    output:
        directory("<results>/runs/{system}/{part}"),
    log:
        "<logs>/rerank/{system}.{part}.log",
    benchmark:
        "<benchmarks>/rerank/{system}.{part}.tsv"
    wildcard_constraints:
        system=of_kind("reranker"),
    conda:
        environment
    threads: network_cores
    resources:
        gpu=gpus(1),
        runtime=1440,
    params:
        code=code("rerank"),
        settings=lambda wildcards: searching(
            wildcards, lengths=lengths(wildcards), **chosen(wildcards, "depth")
        ),
    script:
        "../scripts/rerank.py"


rule fuse:
    """The ranks or scores of several systems, weighted and summed; weights.json has the weights."""
    input:
        runs=of("<results>/runs/{system.of}/{part}"),
        tuned_runs=of("<results>/runs/{system.judged}/evaluated"),
        judged=of("<results>/collections/{system.tuned_collection}/{file}"),
    output:
        directory("<results>/runs/{system}/{part}"),
    log:
        "<logs>/fuse/{system}.{part}.log",
    benchmark:
        "<benchmarks>/fuse/{system}.{part}.tsv"
    wildcard_constraints:
        system=of_kind("fusion"),
    conda:
        environment
    params:
        code=code("fuse"),
        settings=lambda wildcards: searching(
            wildcards,
            tuned_depth=settings.evaluation.depth,
            **chosen(wildcards, "of", "method", "k", "weights", "tuned", "tuned_run"),
        ),
    script:
        "../scripts/fuse.py"


rule read_run:
    """The runs of a third-party system, from TREC files or tables of pairs."""
    input:
        files=lambda wildcards: [ancient(local(file)) for file in run_files(wildcards)],
        collections=on_targets("<results>/collections/{collection}/{file}"),
    output:
        directory("<results>/runs/{system}/{part}"),
    log:
        "<logs>/read_run/{system}.{part}.log",
    benchmark:
        "<benchmarks>/read_run/{system}.{part}.tsv"
    wildcard_constraints:
        system=of_kind("run"),
    conda:
        environment
    params:
        code=code("read_run"),
        contents=lambda wildcards: contents.of(run_files(wildcards)),
        settings=searching,
    script:
        "../scripts/read_run.py"


rule export:
    """A run as a TREC file: ./run results/trec/SYSTEM/COLLECTION.SPLIT.run."""
    input:
        runs="<results>/runs/{system}/evaluated",
        collection=of("<results>/collections/{collection}/{file}"),
    output:
        trec="<results>/trec/{system}/{collection}.{split}.run",
    log:
        "<logs>/export/{system}.{collection}.{split}.log",
    wildcard_constraints:
        split=only({split for _, split in EVALUATED}),
    conda:
        environment
    params:
        code=code("export"),
    script:
        "../scripts/export.py"
