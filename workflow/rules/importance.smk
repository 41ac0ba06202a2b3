# The importance of each word of a collection: equations 7 and 8.

counting = {name: entry.counting() for name, entry in settings.importance.items()}
estimating = {name: entry.values() for name, entry in settings.importance.items()}
masking = {
    name: {
        "settings": settings.encoders[name].masking(),
        "seed": settings.encoders[name].seed,
        "example": settings.report.example,
    }
    for name in systems.masked_by_importance(settings)
}
strategies = [
    f"cdmae.masking.strategies.{name}" for name in ("uniform", "whole_word", "importance")
]


rule ngrams:
    """The exact counts of all n-grams."""
    input:
        tokens="<results>/tokens/{start}/{collection}",
        tokenizer="<results>/tokenizers/{start}",
    output:
        directory("<results>/ngrams/{importance}/{start}/{collection}"),
    log:
        "<logs>/ngrams/{importance}/{start}/{collection}.log",
    benchmark:
        "<benchmarks>/ngrams/{importance}/{start}/{collection}.tsv"
    priority: 50
    conda:
        environment
    resources:
        mem_mb=memory_of("ngrams"),
        runtime=minutes_of("ngrams"),
    params:
        code=code("ngrams"),
        settings=entry("importance", counting),
        launch=launch,
    shell:
        "{params.launch} scripts/ngrams.py --tokens {input.tokens:q} --settings {params.settings:q}"
        " --output {output:q} --memory {resources.mem_mb}"
        " 2>&1 | tee -i {log:q} >&2"


rule importance:
    """The importance of every word-piece, and the table that scores new text."""
    input:
        ngrams="<results>/ngrams/{importance}/{start}/{collection}",
        tokens="<results>/tokens/{start}/{collection}",
    output:
        directory("<results>/importance/{importance}/{start}/{collection}"),
    log:
        "<logs>/importance/{importance}/{start}/{collection}.log",
    benchmark:
        "<benchmarks>/importance/{importance}/{start}/{collection}.tsv"
    priority: 50
    conda:
        environment
    resources:
        mem_mb=memory_of("importance"),
        runtime=minutes_of("importance"),
    params:
        code=code("importance"),
        settings=entry("importance", estimating),
        launch=launch,
    shell:
        "{params.launch} scripts/importance.py --ngrams {input.ngrams:q} --tokens {input.tokens:q}"
        " --settings {params.settings:q} --output {output:q}"
        " 2>&1 | tee -i {log:q} >&2"


rule masked_terms:
    """The words that importance-aware and uniform masks cover."""
    input:
        tokens=of("<results>/tokens/{encoder.start}/{encoder.corpus}"),
        tokenizer=of("<results>/tokenizers/{encoder.start}"),
        importance=of(
            "<results>/{encoder.estimate}/{encoder.importance}/{encoder.start}/{encoder.corpus}"
        ),
    output:
        "<results>/masked_terms/{encoder}.json",
    log:
        "<logs>/masked_terms/{encoder}.log",
    benchmark:
        "<benchmarks>/masked_terms/{encoder}.tsv"
    wildcard_constraints:
        encoder=only(masking),
    conda:
        environment
    resources:
        mem_mb=memory_of("masked_terms"),
        runtime=minutes_of("masked_terms"),
    params:
        code=code("masked_terms", lambda wildcards: strategies),
        settings=entry("encoder", masking, Options),
        launch=launch,
    shell:
        "{params.launch} scripts/masked_terms.py --tokens {input.tokens:q}"
        " --tokenizer {input.tokenizer:q} --importance {input.importance:q}"
        " {params.settings} --output {output:q}"
        " 2>&1 | tee -i {log:q} >&2"
