# How important each word of a collection is: equations 7 and 8.


rule ngrams:
    """How often every n-gram occurs, exactly."""
    input:
        unpack(inputs("ngrams")),
    output:
        directory(graph.ngrams("{importance}", "{start}", "{collection}")),
    log:
        graph.path("logs/ngrams/{importance}/{start}/{collection}.log"),
    benchmark:
        graph.path("benchmarks/ngrams/{importance}/{start}/{collection}.tsv")
    priority: waiting("ngrams")
    conda:
        environment
    threads: cores(16)
    resources:
        mem_mb=memory("ngrams"),
        runtime=120,
    params:
        *code("ngrams"),
        *entry("ngrams", Importance),
        settings=entry_text("ngrams"),
    shell:
        "python workflow/scripts/ngrams.py --tokens {input.tokens:q} --tokenizer {input.tokenizer:q}"
        " --settings {params.settings:q} --output {output:q} --threads {threads} 2>&1 | tee -i {log:q} >&2"


rule importance:
    """The importance of every word-piece, and the table that scores new text."""
    input:
        unpack(inputs("importance")),
    output:
        directory(graph.importance("{importance}", "{start}", "{collection}")),
    log:
        graph.path("logs/importance/{importance}/{start}/{collection}.log"),
    benchmark:
        graph.path("benchmarks/importance/{importance}/{start}/{collection}.tsv")
    priority: waiting("importance")
    conda:
        environment
    threads: cores(16)
    resources:
        mem_mb=memory("importance"),
        runtime=120,
    params:
        *code("importance"),
        *entry("importance", Importance),
        settings=entry_text("importance"),
    shell:
        "python workflow/scripts/importance.py --ngrams {input.ngrams:q} --tokens {input.tokens:q}"
        " --settings {params.settings:q} --output {output:q} --threads {threads} 2>&1 | tee -i {log:q} >&2"


rule masked_terms:
    """What an encoder's importance-aware masks fall on, beside uniform ones."""
    input:
        unpack(inputs("masked_terms")),
    output:
        graph.masked_terms("{encoder}"),
    log:
        graph.path("logs/masked_terms/{encoder}.log"),
    benchmark:
        graph.path("benchmarks/masked_terms/{encoder}.tsv")
    wildcard_constraints:
        encoder=only(graph.masked_by_importance()),
    conda:
        environment
    resources:
        mem_mb=16000,
        runtime=60,
    params:
        *code("masked_terms"),
        *entry("masked_terms", Encoder),
        plugins=plugins("masked_terms"),
        settings=entry_text("masked_terms"),
        seed=setting("masked_terms", "seed"),
        example=setting("masked_terms", "example"),
    shell:
        "python workflow/scripts/masked_terms.py --tokens {input.tokens:q} --tokenizer {input.tokenizer:q}"
        " --importance {input.importance:q} --settings {params.settings:q} --seed {params.seed}"
        " --example {params.example:q} --output {output:q} 2>&1 | tee -i {log:q} >&2"
