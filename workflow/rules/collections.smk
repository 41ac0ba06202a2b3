# Passages, queries, judgments; and the passages in word-pieces.


rule collection:
    """Passages, queries and judgments from their source."""
    input:
        unpack(inputs("collection")),
    output:
        graph.collection_files("{collection}"),
    log:
        graph.path("logs/collection/{collection}.log"),
    benchmark:
        graph.path("benchmarks/collection/{collection}.tsv")
    priority: 100  # mistakes in one's own files show before anything is trained
    conda:
        environment
    threads: lambda wildcards: settings.collections[wildcards.collection].threads
    resources:
        mem_mb=8000,
        runtime=240,
    params:
        *code("collection"),
        plugins=plugins("collection"),
        settings=setting("collection", "settings"),
        version=setting("collection", "version"),
        # A function of `output`, for the stages are no reason to make the collection again.
        batches=lambda wildcards, output: plain(graph.batches(wildcards.collection)),
        folder=lambda wildcards, output: dirname(output[0]),
    shell:
        "python workflow/scripts/collection.py --name {wildcards.collection} --settings {params.settings:q}"
        " --batches {params.batches:q} --output {params.folder:q} --threads {threads}"
        " 2>&1 | tee -i {log:q} >&2"


rule tokenizer:
    """The word-pieces of a start: its checkpoint's, or trained on its collection."""
    input:
        unpack(inputs("tokenizer")),
    output:
        directory(graph.tokenizer("{start}")),
    log:
        graph.path("logs/tokenizer/{start}.log"),
    benchmark:
        graph.path("benchmarks/tokenizer/{start}.tsv")
    priority: waiting("tokenizer")
    conda:
        environment
    resources:
        mem_mb=16000,
        runtime=120,
    params:
        *code("tokenizer"),
        start=setting("tokenizer", "start"),
        collection=option("passages", "--collection", dirname),
    shell:
        "python workflow/scripts/tokenizer.py --start {params.start:q} {params.collection} --output {output:q}"
        " 2>&1 | tee -i {log:q} >&2"


rule tokens:
    """A collection in word-pieces, once and for all."""
    input:
        unpack(inputs("tokens")),
    output:
        directory(graph.tokens("{start}", "{collection}")),
    log:
        graph.path("logs/tokens/{start}/{collection}.log"),
    benchmark:
        graph.path("benchmarks/tokens/{start}/{collection}.tsv")
    priority: waiting("tokens")
    conda:
        environment
    threads: cores(16)
    resources:
        mem_mb=32000,
        runtime=120,
    params:
        *code("tokens"),
        collection=folder("passages"),
    shell:
        "python workflow/scripts/tokens.py --tokenizer {input.tokenizer:q} --collection {params.collection:q}"
        " --output {output:q} --threads {threads} 2>&1 | tee -i {log:q} >&2"
