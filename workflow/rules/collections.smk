# Passages, queries and judgments; tokenizers; passages in word-pieces.

from cdmae import collections

collecting = {
    name: {
        "collection": entry.values(),
        "version": entry.settings.version() if collections.readable() else {},
    }
    for name, entry in settings.collections.items()
}
sources = {name: [entry.module] for name, entry in settings.collections.items()}
expanded = [name for name, entry in settings.collections.items() if entry.settings.writer]
asked_by_keywords = [
    name for name, entry in settings.collections.items() if entry.settings.keywords_of
]
tokenizing = {name: start.tokenizer() for name, start in settings.starts.items()}


rule expansions:
    """Texts for the passages of a collection, such as queries, by a sequence-to-sequence model."""
    input:
        files=files_of("{collection.files}"),
        model=files_of("{collection.writer}"),
    output:
        "<results>/expansions/{collection}.tsv",
    log:
        "<logs>/expansions/{collection}.log",
    benchmark:
        "<benchmarks>/expansions/{collection}.tsv"
    wildcard_constraints:
        collection=only(expanded),
    priority: 50
    conda:
        environment
    threads: network_cores("expansions", 8)
    resources:
        gpu=gpus_of("expansions"),
        mem_mb=memory_of("expansions"),
        runtime=minutes_of("expansions"),
    params:
        code=code("expansions", lookup(dpath="{collection}", within=sources)),
        settings=entry("collection", collecting),
        launch=launch,
    shell:
        "{params.launch} --gpus {resources.gpu} scripts/expansions.py"
        " --settings {params.settings[collection]:q} --output {output:q} --threads {threads}"
        " 2>&1 | tee -i {log:q} >&2"


rule keywords:
    """The most important words of each passage of a collection, which become its queries."""
    input:
        files=files_of("{collection.files}"),
        importance=of("<results>/importance/{collection.estimate}"),
        ngrams=of("<results>/ngrams/{collection.estimate}"),
        tokenizer=of("<results>/tokenizers/{collection.tokenizer}"),
    output:
        "<results>/keywords/{collection}.tsv",
    log:
        "<logs>/keywords/{collection}.log",
    benchmark:
        "<benchmarks>/keywords/{collection}.tsv"
    wildcard_constraints:
        collection=only(asked_by_keywords),
    priority: 50
    conda:
        environment
    resources:
        mem_mb=memory_of("keywords"),
        runtime=minutes_of("keywords"),
    params:
        code=code("keywords", lookup(dpath="{collection}", within=sources)),
        settings=entry("collection", collecting),
        launch=launch,
    shell:
        "{params.launch} scripts/keywords.py --settings {params.settings[collection]:q}"
        " --importance {input.importance:q} --tokenizer {input.tokenizer:q} --output {output:q}"
        " 2>&1 | tee -i {log:q} >&2"


rule collection:
    """Passages, queries and judgments from their source."""
    input:
        files_of("{collection.files}"),
        texts=of("<results>/{collection.texts}"),
    output:
        "<results>/collections/{collection}/passages.parquet",
        "<results>/collections/{collection}/queries.parquet",
        "<results>/collections/{collection}/qrels.parquet",
        "<results>/collections/{collection}/about.json",
    log:
        "<logs>/collection/{collection}.log",
    benchmark:
        "<benchmarks>/collection/{collection}.tsv"
    priority: 100  # errors in the user's files are reported before anything is trained
    conda:
        environment
    threads: lookup(dpath="{collection}/threads", within=tables["collection"])
    resources:
        mem_mb=memory_of("collection"),
        runtime=minutes_of("collection"),
    params:
        code=code("collection", lookup(dpath="{collection}", within=sources)),
        settings=entry("collection", collecting),
        launch=launch,
        needed=needed,
        folder=subpath(output[0], parent=True),
    shell:
        "{params.launch} scripts/collection.py --name {wildcards.collection}"
        " --settings {params.settings[collection]:q} --needed {params.needed:q}"
        " --texts {input.texts:q} --output {params.folder:q} --threads {threads}"
        " 2>&1 | tee -i {log:q} >&2"


rule tokenizer:
    """The tokenizer of an initial model: its checkpoint's, or one trained on its collection."""
    input:
        passages=of("<results>/collections/{start.vocabulary}/passages.parquet"),
        checkpoint=files_of("{start.checkpoint}"),
    output:
        directory("<results>/tokenizers/{start}"),
    log:
        "<logs>/tokenizer/{start}.log",
    benchmark:
        "<benchmarks>/tokenizer/{start}.tsv"
    priority: 50
    conda:
        environment
    resources:
        mem_mb=memory_of("tokenizer"),
        runtime=minutes_of("tokenizer"),
    params:
        code=code("tokenizer"),
        settings=entry("start", tokenizing),
        launch=launch,
        collection=folder("passages"),
        prompted=prompted,
    shell:
        "{params.launch} scripts/tokenizer.py --start {params.settings:q}"
        " --prompted {params.prompted:q} --collection {params.collection:q} --output {output:q}"
        " 2>&1 | tee -i {log:q} >&2"


rule tokens:
    """A collection in word-pieces."""
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
    conda:
        environment
    threads: cores(16)
    resources:
        mem_mb=memory_of("tokens"),
        runtime=minutes_of("tokens"),
    params:
        code=code("tokens"),
        launch=launch,
        collection=subpath(input.passages, parent=True),
    shell:
        "{params.launch} scripts/tokens.py --tokenizer {input.tokenizer:q}"
        " --collection {params.collection:q} --output {output:q} --threads {threads}"
        " 2>&1 | tee -i {log:q} >&2"
