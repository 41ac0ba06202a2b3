# Passages, queries, judgments; and the passages in word-pieces.

collection_settings = {name: entry.values() for name, entry in settings.collections.items()}
tokenizer_settings = {name: start.tokenizer() for name, start in settings.starts.items()}
taken = {name: systems.batches(settings, name) for name in settings.collections}  # what the stages take per step


rule collection:
    """Passages, queries and judgments from their source."""
    input:
        of_collection("{files}"),
    output:
        "<results>/collections/{collection}/passages.parquet",
        "<results>/collections/{collection}/queries.parquet",
        "<results>/collections/{collection}/qrels.parquet",
        "<results>/collections/{collection}/about.json",
    log:
        "<logs>/collection/{collection}.log",
    benchmark:
        "<benchmarks>/collection/{collection}.tsv"
    priority: 100  # mistakes in one's own files show before anything is trained
    threads: column(collection_rows, "threads")
    resources:
        mem_mb=8000,
        runtime=240,
    params:
        *code("collection"),
        *settings_of(collection_settings),
        plugins=plugins("collection", {name: [entry.module] for name, entry in settings.collections.items()}),
        settings=text_of(collection_settings),
        version=column(collection_rows, "version"),
        batches=text_of(taken),
        folder=subpath(output[0], parent=True),
    shell:
        "python workflow/scripts/collection.py --name {wildcards.collection} --settings {params.settings:q}"
        " --batches {params.batches:q} --output {params.folder:q} --threads {threads}"
        " 2>&1 | tee -i {log:q} >&2"


rule tokenizer:
    """The word-pieces of a start: its checkpoint's, or trained on its collection."""
    input:
        passages=of_start("<results>/collections/{vocabulary}/passages.parquet"),
        checkpoint=of_start("{checkpoint}"),
    output:
        directory("<results>/tokenizers/{start}"),
    log:
        "<logs>/tokenizer/{start}.log",
    benchmark:
        "<benchmarks>/tokenizer/{start}.tsv"
    priority: 50
    resources:
        mem_mb=16000,
        runtime=120,
    params:
        *code("tokenizer"),
        *settings_of(tokenizer_settings),
        start=text_of(tokenizer_settings),
        collection=folder("passages"),
    shell:
        "python workflow/scripts/tokenizer.py --start {params.start:q} --collection {params.collection:q}"
        " --output {output:q} 2>&1 | tee -i {log:q} >&2"


rule tokens:
    """A collection in word-pieces, once and for all."""
    input:
        tokenizer="<results>/tokenizers/{start}",
        passages="<results>/collections/{collection}/passages.parquet",
    output:
        directory("<results>/tokens/{start}/{collection}"),
    log:
        "<logs>/tokens/{start}/{collection}.log",
    benchmark:
        "<benchmarks>/tokens/{start}/{collection}.tsv"
    priority: 50
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
