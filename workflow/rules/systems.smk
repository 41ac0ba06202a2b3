# A system ranks passages for queries. Its runs are in <results>/runs/{system}/{part}, one file per
# collection and split: {part} is `evaluated`, or COLLECTION.SPLIT, the queries on which a stage
# trains; their runs give the negatives of the stage. Systems that search keep their indexes or
# vectors of the collections that they have searched.


rule bm25:
    """BM25's indexes of titles and texts, and its runs."""
    input:
        collections=on_collections("<results>/collections/{collection}/{file}"),
        passages=indexed_collections,
        mined=of_mining("<results>/bm25/{system}/{part}"),
    output:
        runs=directory("<results>/runs/{system}/{part}"),
        indexes=directory("<results>/bm25/{system}/{part}"),
    log:
        "<logs>/bm25/{system}.{part}.log",
    wildcard_constraints:
        system=only(systems.of_kind(settings, "bm25")),
    conda:
        environment
    threads: cores
    params:
        call="cdmae.retrieval.bm25.write_runs",
        code=code("cdmae.retrieval.bm25"),
        settings=lambda wildcards: searching(
            wildcards, languages=languages(wildcards), **chosen(wildcards, "k1", "b")
        ),
    script:
        "../scripts/call.py"


rule search:
    """The vectors of passages, and the runs of a system among all passages or candidates."""
    input:
        model=of("<results>/trained/{system.network}"),
        checkpoint=files_of("{system.model_files}"),
        collections=on_collections("<results>/collections/{collection}/{file}"),
        tokens=on_collections("<results>/tokens/{system.start}/{passages}"),
        runs=of("<results>/runs/{system.candidates}/{part}"),
        mined=of_mining("<results>/vectors/{system}/{part}"),
    output:
        runs=directory("<results>/runs/{system}/{part}"),
        vectors=directory("<results>/vectors/{system}/{part}"),
    log:
        "<logs>/search/{system}.{part}.log",
    wildcard_constraints:
        system=only(systems.of_kind(settings, "retriever", "external", "head")),
    conda:
        environment
    threads: lambda wildcards, input: max(network_cores(wildcards), cores(wildcards, input))
    resources:
        gpu=gpus_of_encoding,
        nodes=1,
        mem_mb=memory(16000, times=1),
        runtime=1440,
    params:
        call="cdmae.retrieval.search.write_runs",
        code=code("cdmae.retrieval.search", module_of),
        contents=contents_of("{system.model_files}"),
        settings=searching_vectors,
        # unrecorded: keeping the vectors of training queries is no reason to search again
        keep=lambda wildcards, output: systems.keeps_vectors(settings, wildcards.system),
    script:
        "../scripts/call.py"


rule rerank:
    """The best passages of another system's runs, reordered by a cross-encoder."""
    input:
        model="<results>/trained/{system}",
        collections=on_targets("<results>/collections/{collection}/{file}"),
        tokens=on_targets("<results>/tokens/{system.start}/{passages}"),
        runs=of("<results>/runs/{system.reranks}/{part}"),
    output:
        runs=directory("<results>/runs/{system}/{part}"),
    log:
        "<logs>/rerank/{system}.{part}.log",
    wildcard_constraints:
        system=only(systems.of_kind(settings, "reranker")),
    conda:
        environment
    threads: network_cores
    resources:
        gpu=gpus(1),
        runtime=1440,
    params:
        call="cdmae.retrieval.reranking.rerank",
        code=code("cdmae.retrieval.reranking"),
        settings=lambda wildcards: searching(
            wildcards,
            lengths=pick(settings.evaluation.lengths, collections_of(wildcards)),
            **chosen(wildcards, "depth"),
        ),
    script:
        "../scripts/call.py"


rule fuse:
    """The ranks or scores of several systems, weighted and summed; weights.json has the weights."""
    input:
        runs=of("<results>/runs/{system.of}/{part}"),
        tuning_runs=of("<results>/runs/{system.tuning_systems}/evaluated"),
        judged=of("<results>/collections/{system.tuning_collection}/{file}"),
    output:
        runs=directory("<results>/runs/{system}/{part}"),
    log:
        "<logs>/fuse/{system}.{part}.log",
    wildcard_constraints:
        system=only(systems.of_kind(settings, "fusion")),
    conda:
        environment
    params:
        code=code("fuse"),
        settings=lambda wildcards: searching(
            wildcards,
            tuning_depth=settings.evaluation.depth,
            **chosen(wildcards, "of", "method", "k", "weights", "tuned_on", "tuning_measure"),
        ),
    script:
        "../scripts/fuse.py"


rule read_run:
    """The runs of a third-party system, from TREC files or tables of pairs."""
    input:
        files=lambda wildcards: [ancient(local(file)) for file in run_files(wildcards)],
        collections=on_targets("<results>/collections/{collection}/{file}"),
    output:
        runs=directory("<results>/runs/{system}/{part}"),
    log:
        "<logs>/read_run/{system}.{part}.log",
    wildcard_constraints:
        system=only(systems.of_kind(settings, "run")),
    conda:
        environment
    params:
        code=code("read_run"),
        contents=lambda wildcards: fingerprint.contents(run_files(wildcards)),
        settings=searching,
    script:
        "../scripts/read_run.py"


rule trec:
    """A run as a TREC file: ./run results/trec/SYSTEM/COLLECTION.SPLIT.run."""
    input:
        runs="<results>/runs/{system}/evaluated",
        collection=of_target,
    output:
        trec="<results>/trec/{system}/{target}.run",
    log:
        "<logs>/trec/{system}.{target}.log",
    wildcard_constraints:
        target=only(".".join(target) for target in EVALUATED),
    conda:
        environment
    params:
        call="cdmae.retrieval.trec.export",
        code=code("cdmae.retrieval.trec"),
    script:
        "../scripts/call.py"


rule qrels:
    """The judgments of a split as a TREC file: ./run results/trec/COLLECTION.SPLIT.qrels."""
    input:
        collection=of_target,
    output:
        qrels="<results>/trec/{target}.qrels",
    log:
        "<logs>/qrels/{target}.log",
    wildcard_constraints:
        target=only(".".join(target) for target in EVALUATED),
    conda:
        environment
    params:
        call="cdmae.retrieval.trec.export_qrels",
        code=code("cdmae.retrieval.trec"),
    script:
        "../scripts/call.py"
