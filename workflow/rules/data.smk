# Passages, queries and judgments; tokenizers; passages in word-pieces; the importance of each word
# (equations 7 and 8).


rule texts:
    """Texts that a model writes for the passages of a collection."""
    input:
        files=files_of("{collection.files}"),
        model=files_of("{collection.writer}"),
    output:
        "<results>/texts/{collection}.tsv",
    log:
        "<logs>/texts/{collection}.log",
    wildcard_constraints:
        collection=only(name for name, row in tables["collection"].items() if row["written"]),
    conda:
        environment
    threads: 8
    resources:
        gpu=int(device != "cpu"),
        runtime=1440,
    params:
        call="cdmae.retrieval.expansion.write_texts",
        code=code("cdmae.retrieval.expansion", modules_of_source),
        contents=contents_of("{collection.files}", "{collection.writer}"),
        settings=lambda wildcards: collecting(wildcards, without=CHOICES),
    script:
        "../scripts/call.py"


rule collection:
    """Passages, queries and judgments from their source."""
    input:
        files=files_of("{collection.files}"),
        texts=of("<results>/{collection.written}"),
        shared=of("<results>/collections/{collection.shared}/{file}"),
    output:
        expand("<results>/collections/{collection}/{file}", file=FILES, allow_missing=True),
    log:
        "<logs>/collection/{collection}.log",
    priority: 100  # errors in the user's files are reported before anything is trained
    conda:
        environment
    resources:
        mem_mb=memory(16000, times=3),
    params:
        code=code("collection", modules_of_source),
        contents=contents_of("{collection.files}"),
        settings=collecting,
    script:
        "../scripts/collection.py"


rule tokenizer:
    """The tokenizer of an initial model: its checkpoint's, or one trained on its collection."""
    input:
        passages=of("<results>/collections/{start.collection}/passages.parquet"),
        checkpoint=files_of("{start.checkpoint}"),
    output:
        directory("<results>/tokenizers/{start}"),
    log:
        "<logs>/tokenizer/{start}.log",
    conda:
        environment
    params:
        code=code("tokenizer", lambda wildcards: [type(settings.starts[wildcards.start])]),
        contents=contents_of("{start.checkpoint}"),
        settings=lambda wildcards: {"settings": settings.starts[wildcards.start].tokenizer()},
    script:
        "../scripts/tokenizer.py"


rule tokens:
    """A collection in word-pieces."""
    input:
        tokenizer="<results>/tokenizers/{start}",
        passages="<results>/collections/{collection}/passages.parquet",
    output:
        directory("<results>/tokens/{start}/{collection}"),
    log:
        "<logs>/tokens/{start}/{collection}.log",
    conda:
        environment
    threads: cores
    params:
        call="cdmae.tokens.tokenise.tokenise_to",
        code=code("cdmae.tokens.tokenise"),
    script:
        "../scripts/call.py"


rule ngrams:
    """The exact counts of all n-grams of a collection."""
    input:
        tokens="<results>/tokens/{start}/{collection}",
    output:
        directory("<results>/ngrams/{importance}/{start}/{collection}"),
    log:
        "<logs>/ngrams/{importance}/{start}/{collection}.log",
    conda:
        environment
    threads: cores
    resources:
        mem_mb=memory(8000, times=20),
    params:
        call="cdmae.importance.ngrams.count_to",
        code=code("cdmae.importance.ngrams"),
        settings=lambda wildcards: settings.importance[wildcards.importance].counting(),
    script:
        "../scripts/call.py"


rule importance:
    """The importance of every word-piece by the counts of its n-grams, to which it refers."""
    input:
        tokens="<results>/tokens/{start}/{collection}",
        counted="<results>/ngrams/{importance}/{start}/{collection}",
    output:
        directory("<results>/importance/{importance}/{start}/{collection}"),
    log:
        "<logs>/importance/{importance}/{start}/{collection}.log",
    conda:
        environment
    resources:
        mem_mb=memory(8000, times=2),
    params:
        call="cdmae.importance.ami.estimate",
        code=code("cdmae.importance.ami"),
        settings=lambda wildcards: {"formula": settings.importance[wildcards.importance].formula()},
    script:
        "../scripts/call.py"


rule masked_terms:
    """The words that importance-aware and uniform masks cover."""
    input:
        tokens=of("<results>/tokens/{encoder.start}/{encoder.corpus}"),
        tokenizer=of("<results>/tokenizers/{encoder.start}"),
        importance=of("<results>/{encoder.importance_folder}"),
    output:
        "<results>/masked_terms/{encoder}.json",
    log:
        "<logs>/masked_terms/{encoder}.log",
    wildcard_constraints:
        encoder=only(systems.masked_by_importance(settings)),
    conda:
        environment
    params:
        call="cdmae.masking.terms.describe",
        code=code("cdmae.masking.terms", "cdmae.masking.strategies.uniform", strategies),
        settings=lambda wildcards: {"settings": settings.encoders[wildcards.encoder].values()},
    script:
        "../scripts/call.py"
