# Collections of any size: with --set-scatter shards=N, ranges of passages or of queries are jobs of
# their own, and one more job joins each result. The files are those of one job, bit by bit.
# Included for N > 1.
#
# n-grams are counted order by order: every shard lists its keys, and every range of keys is counted
# over all shards (cdmae/importance/shards.py). The parts are deleted after their last reader.


ruleorder: tokens_joined > tokens
ruleorder: ngrams_joined > ngrams
ruleorder: vectors_joined > vectors
ruleorder: search_joined > search
ruleorder: mine_joined > mine
ruleorder: search_bm25_joined > search_bm25
ruleorder: mine_bm25_joined > mine_bm25
ruleorder: rerank_joined > rerank
ruleorder: teacher_joined > teacher


# --- tokens -------------------------------------------------------------------------------------


rule tokens_part:
    """A range of a collection's passages in word-pieces."""
    input:
        tokenizer="<results>/tokenizers/{start}",
        passages="<results>/collections/{collection}/passages.parquet",
    output:
        temp(directory("<results>/parts/tokens/{start}/{collection}/{scatteritem}")),
    log:
        "<logs>/tokens_part/{start}/{collection}/{scatteritem}.log",
    benchmark:
        "<benchmarks>/tokens_part/{start}/{collection}/{scatteritem}.tsv"
    priority: 50
    conda:
        environment
    threads: cores(16)
    resources:
        mem_mb=memory_of("tokens_part"),
        runtime=minutes_of("tokens_part"),
    params:
        code=code("tokens"),
        launch=launch,
        collection=subpath(input.passages, parent=True),
    shell:
        "{params.launch} scripts/tokens.py --tokenizer {input.tokenizer:q}"
        " --collection {params.collection:q} --part {wildcards.scatteritem} --output {output:q}"
        " --threads {threads}"
        " 2>&1 | tee -i {log:q} >&2"


rule tokens_joined:
    """A collection in word-pieces, from all ranges of its passages."""
    input:
        gather.shards("<results>/parts/tokens/{{start}}/{{collection}}/{scatteritem}"),
    output:
        directory("<results>/tokens/{start}/{collection}"),
    log:
        "<logs>/tokens_joined/{start}/{collection}.log",
    benchmark:
        "<benchmarks>/tokens_joined/{start}/{collection}.tsv"
    priority: 50
    conda:
        environment
    resources:
        mem_mb=memory_of("tokens_joined"),
        runtime=minutes_of("tokens_joined"),
    params:
        code=code("tokens_joined"),
        launch=launch,
        folders=all_parts(),
    shell:
        "{params.launch} scripts/tokens_joined.py --folders {params.folders:q} --output {output:q}"
        " 2>&1 | tee -i {log:q} >&2"


# --- n-grams ------------------------------------------------------------------------------------

COUNTED = "{importance}/{start}/{collection}"


rule ngram_words:
    """The numbers of the words in a shard."""
    input:
        "<results>/parts/tokens/{start}/{collection}/{scatteritem}",
    output:
        temp(directory(f"<results>/parts/words/{COUNTED}/{{scatteritem}}")),
    log:
        f"<logs>/ngram_words/{COUNTED}/{{scatteritem}}.log",
    benchmark:
        f"<benchmarks>/ngram_words/{COUNTED}/{{scatteritem}}.tsv"
    priority: 50
    conda:
        environment
    resources:
        mem_mb=memory_of("ngram_words"),
        runtime=minutes_of("ngram_words"),
    params:
        code=code("ngram_words"),
        settings=entry("importance", counting),
        launch=launch,
    shell:
        "{params.launch} scripts/ngram_words.py --tokens {input:q} --settings {params.settings:q}"
        " --output {output:q} --threads {threads}"
        " 2>&1 | tee -i {log:q} >&2"


rule ngram_vocabulary:
    """The words of a collection, from the words of all shards."""
    input:
        gather.shards(f"<results>/parts/words/{COUNTED}/{{scatteritem}}", allow_missing=True),
    output:
        temp(directory(f"<results>/parts/vocabulary/{COUNTED}")),
    log:
        f"<logs>/ngram_vocabulary/{COUNTED}.log",
    benchmark:
        f"<benchmarks>/ngram_vocabulary/{COUNTED}.tsv"
    priority: 50
    conda:
        environment
    resources:
        mem_mb=memory_of("ngram_vocabulary"),
        runtime=minutes_of("ngram_vocabulary"),
    params:
        code=code("ngram_vocabulary"),
        launch=launch,
        words=all_parts(),
    shell:
        "{params.launch} scripts/ngram_vocabulary.py --words {params.words:q} --output {output:q}"
        " 2>&1 | tee -i {log:q} >&2"


rule ngram_keys:
    """The keys of a shard for one order, and its counts for the previous order by position."""
    input:
        words=f"<results>/parts/words/{COUNTED}/{{scatteritem}}",
        vocabulary=f"<results>/parts/vocabulary/{COUNTED}",
        counts=order_before(f"<results>/parts/counts/{COUNTED}/{{order}}/{{scatteritem}}.npy"),
        listed=order_before(f"<results>/parts/keys/{COUNTED}/{{order}}/{{scatteritem}}"),
        answers=order_before(
            gather.shards(
                f"<results>/parts/answers/{COUNTED}/{{order}}/{{scatteritem}}", allow_missing=True
            )
        ),
    output:
        counts=temp(f"<results>/parts/counts/{COUNTED}/{{order}}/{{scatteritem}}.npy"),
        listed=temp(directory(f"<results>/parts/keys/{COUNTED}/{{order}}/{{scatteritem}}")),
    log:
        f"<logs>/ngram_keys/{COUNTED}/{{order}}/{{scatteritem}}.log",
    benchmark:
        f"<benchmarks>/ngram_keys/{COUNTED}/{{order}}/{{scatteritem}}.tsv"
    priority: 50
    conda:
        environment
    resources:
        mem_mb=memory_of("ngram_keys"),
        runtime=minutes_of("ngram_keys"),
    params:
        code=code("ngram_keys"),
        settings=entry("importance", counting),
        launch=launch,
        answers=all_parts("answers"),
    shell:
        "{params.launch} scripts/ngram_keys.py --shard {wildcards.scatteritem}"
        " --order {wildcards.order} --words {input.words:q} --vocabulary {input.vocabulary:q}"
        " --counts-before {input.counts:q} --keys-before {input.listed:q} --answers {params.answers:q}"
        " --settings {params.settings:q} --counts {output.counts:q} --keys {output.listed:q}"
        " 2>&1 | tee -i {log:q} >&2"


rule ngram_counts:
    """The counts of one range of keys over all shards, for one order."""
    input:
        gather.shards(
            f"<results>/parts/keys/{COUNTED}/{{order}}/{{scatteritem}}", allow_missing=True
        ),
    output:
        table=temp(directory(f"<results>/parts/tables/{COUNTED}/{{order}}/{{scatteritem}}")),
        answers=temp(directory(f"<results>/parts/answers/{COUNTED}/{{order}}/{{scatteritem}}")),
    log:
        f"<logs>/ngram_counts/{COUNTED}/{{order}}/{{scatteritem}}.log",
    benchmark:
        f"<benchmarks>/ngram_counts/{COUNTED}/{{order}}/{{scatteritem}}.tsv"
    priority: 50
    conda:
        environment
    resources:
        mem_mb=memory_of("ngram_counts"),
        runtime=minutes_of("ngram_counts"),
    params:
        code=code("ngram_counts"),
        launch=launch,
        listed=all_parts(),
    shell:
        "{params.launch} scripts/ngram_counts.py --keys {params.listed:q} --part {wildcards.scatteritem}"
        " --table {output.table:q} --answers {output.answers:q}"
        " 2>&1 | tee -i {log:q} >&2"


rule ngrams_joined:
    """How often every n-gram occurs, from all shards and ranges of keys."""
    input:
        vocabulary=f"<results>/parts/vocabulary/{COUNTED}",
        words=gather.shards(f"<results>/parts/words/{COUNTED}/{{scatteritem}}", allow_missing=True),
        counts=all_orders(
            f"<results>/parts/counts/{COUNTED}/{{order}}/{{scatteritem}}.npy", beyond=1
        ),
        tables=all_orders(f"<results>/parts/tables/{COUNTED}/{{order}}/{{scatteritem}}"),
    output:
        directory(f"<results>/ngrams/{COUNTED}"),
    log:
        f"<logs>/ngrams_joined/{COUNTED}.log",
    benchmark:
        f"<benchmarks>/ngrams_joined/{COUNTED}.tsv"
    priority: 50
    conda:
        environment
    resources:
        mem_mb=memory_of("ngrams_joined"),
        runtime=minutes_of("ngrams_joined"),
    params:
        code=code("ngrams_joined"),
        launch=launch,
        words=all_parts("words"),
        counts=all_parts("counts"),
        tables=all_parts("tables"),
    shell:
        "{params.launch} scripts/ngrams_joined.py --vocabulary {input.vocabulary:q}"
        " --words {params.words:q} --counts {params.counts:q} --tables {params.tables:q}"
        " --output {output:q}"
        " 2>&1 | tee -i {log:q} >&2"


# --- vectors, search and mining -----------------------------------------------------------------


use rule vectors as vectors_part with:
    # A retriever's vectors of a range of a collection's passages.
    output:
        temp(directory("<results>/parts/vectors/{system}/{collection}/{scatteritem}")),
    log:
        "<logs>/vectors_part/{system}.{collection}.{scatteritem}.log",
    benchmark:
        "<benchmarks>/vectors_part/{system}.{collection}.{scatteritem}.tsv"
    resources:
        gpu=gpus_of("vectors"),
        mem_mb=memory_of("vectors_part"),
        runtime=minutes_of("vectors_part"),
    params:
        code=code("vectors"),
        settings=in_part(encoding),
        launch=launch,


rule vectors_joined:
    """A retriever's vectors of a collection's passages, from all ranges."""
    input:
        gather.shards("<results>/parts/vectors/{{system}}/{{collection}}/{scatteritem}"),
    output:
        directory("<results>/vectors/{system}/{collection}"),
    log:
        "<logs>/vectors_joined/{system}.{collection}.log",
    benchmark:
        "<benchmarks>/vectors_joined/{system}.{collection}.tsv"
    wildcard_constraints:
        system=of_kind("retriever"),
    priority: waiting("system")
    conda:
        environment
    resources:
        mem_mb=memory_of("vectors_joined"),
        runtime=minutes_of("vectors_joined"),
    params:
        code=code("vectors_joined"),
        launch=launch,
        folders=all_parts(),
    shell:
        "{params.launch} scripts/vectors_joined.py --folders {params.folders:q} --output {output:q}"
        " 2>&1 | tee -i {log:q} >&2"


use rule search as search_part with:
    # A retriever's runs over a range of the passages, for everything that is evaluated.
    output:
        temp(
            expand(
                "<results>/parts/runs/{system}/{scatteritem}/{target}.parquet",
                target=TARGETS,
                allow_missing=True,
            )
        ),
    log:
        "<logs>/search_part/{system}.{scatteritem}.log",
    benchmark:
        "<benchmarks>/search_part/{system}.{scatteritem}.tsv"
    resources:
        gpu=gpus_of("search"),
        mem_mb=memory_of("search_part"),
        runtime=minutes_of("search_part"),
    params:
        code=code("search"),
        settings=in_part(searching),
        collections=folders("queries"),
        launch=launch,


rule search_joined:
    """A retriever's runs over everything that is evaluated, from all ranges of the passages."""
    input:
        expand(
            "<results>/parts/runs/{system}/{scatteritem}/{target}.parquet",
            target=TARGETS,
            scatteritem=PARTS,
            allow_missing=True,
        ),
    output:
        expand("<results>/runs/{system}/{target}.parquet", target=TARGETS, allow_missing=True),
    log:
        "<logs>/search_joined/{system}.log",
    benchmark:
        "<benchmarks>/search_joined/{system}.tsv"
    wildcard_constraints:
        system=of_kind("retriever", "head"),
    priority: waiting("system")
    conda:
        environment
    resources:
        mem_mb=memory_of("search_joined"),
        runtime=minutes_of("search_joined"),
    params:
        code=code("runs_joined"),
        depth=depth,
        launch=launch,
        runs=all_parts(),
    shell:
        "{params.launch} scripts/runs_joined.py --runs {params.runs:q} --outputs {output:q}"
        " --depth {params.depth}"
        " 2>&1 | tee -i {log:q} >&2"


use rule search_part as mine_part with:
    # A retriever's run over training queries, for a range of the passages.
    output:
        temp("<results>/parts/negatives/{system}.{collection}.{split}/{scatteritem}.parquet"),
    log:
        "<logs>/mine_part/{system}.{collection}.{split}.{scatteritem}.log",
    benchmark:
        "<benchmarks>/mine_part/{system}.{collection}.{split}.{scatteritem}.tsv"


use rule search_joined as mine_joined with:
    # A retriever's run over training queries, from all ranges: the negatives of the next stage.
    input:
        gather.shards(
            "<results>/parts/negatives/{{system}}.{{collection}}.{{split}}/{scatteritem}.parquet"
        ),
    output:
        "<results>/negatives/{system}.{collection}.{split}.parquet",
    log:
        "<logs>/mine_joined/{system}.{collection}.{split}.log",
    benchmark:
        "<benchmarks>/mine_joined/{system}.{collection}.{split}.tsv"


# --- BM25, rerankers and teachers, by ranges of the queries ---------------------------------------


use rule search_bm25 as search_bm25_part with:
    # BM25's runs for a range of the queries.
    output:
        temp(
            expand(
                "<results>/parts/runs/{system}/{scatteritem}/{target}.parquet",
                target=TARGETS,
                allow_missing=True,
            )
        ),
    log:
        "<logs>/search_bm25_part/{system}.{scatteritem}.log",
    benchmark:
        "<benchmarks>/search_bm25_part/{system}.{scatteritem}.tsv"
    resources:
        mem_mb=memory_of("search_bm25_part"),
        runtime=minutes_of("search_bm25_part"),
    params:
        code=code("search_bm25"),
        settings=in_part(searching_bm25),
        launch=launch,
        collections=folders("queries"),


use rule search_bm25_part as mine_bm25_part with:
    # BM25's run for a range of the training queries.
    output:
        temp("<results>/parts/negatives/{system}.{collection}.{split}/{scatteritem}.parquet"),
    log:
        "<logs>/mine_bm25_part/{system}.{collection}.{split}.{scatteritem}.log",
    benchmark:
        "<benchmarks>/mine_bm25_part/{system}.{collection}.{split}.{scatteritem}.tsv"


use rule rerank as rerank_part with:
    # The runs of a reranker for a range of the queries.
    output:
        temp(
            expand(
                "<results>/parts/runs/{system}/{scatteritem}/{target}.parquet",
                target=TARGETS,
                allow_missing=True,
            )
        ),
    log:
        "<logs>/rerank_part/{system}.{scatteritem}.log",
    benchmark:
        "<benchmarks>/rerank_part/{system}.{scatteritem}.tsv"
    resources:
        gpu=gpus_of("rerank"),
        mem_mb=memory_of("rerank_part"),
        runtime=minutes_of("rerank_part"),
    params:
        code=code("rerank"),
        settings=in_part(reranking),
        launch=launch,
        collections=folders("queries"),


rule rerank_joined:
    """The runs of a reranker over everything that is evaluated, from all ranges of the queries."""
    input:
        rules.search_joined.input,
    output:
        expand("<results>/runs/{system}/{target}.parquet", target=TARGETS, allow_missing=True),
    log:
        "<logs>/rerank_joined/{system}.log",
    benchmark:
        "<benchmarks>/rerank_joined/{system}.tsv"
    wildcard_constraints:
        system=of_kind("reranker"),
    priority: waiting("system")
    conda:
        environment
    resources:
        mem_mb=memory_of("rerank_joined"),
        runtime=minutes_of("rerank_joined"),
    params:
        code=code("queries_joined"),
        launch=launch,
        runs=all_parts(),
    shell:
        "{params.launch} scripts/queries_joined.py --runs {params.runs:q} --outputs {output:q}"
        " 2>&1 | tee -i {log:q} >&2"


use rule rerank_joined as search_bm25_joined with:
    # BM25's runs over everything that is evaluated, from all ranges of the queries.
    log:
        "<logs>/search_bm25_joined/{system}.log",
    benchmark:
        "<benchmarks>/search_bm25_joined/{system}.tsv"
    wildcard_constraints:
        system=of_kind("bm25"),


use rule search_bm25_joined as mine_bm25_joined with:
    # BM25's run over training queries, from all ranges of the queries.
    input:
        rules.mine_joined.input,
    output:
        "<results>/negatives/{system}.{collection}.{split}.parquet",
    log:
        "<logs>/mine_bm25_joined/{system}.{collection}.{split}.log",
    benchmark:
        "<benchmarks>/mine_bm25_joined/{system}.{collection}.{split}.tsv"


use rule teacher as teacher_part with:
    # A reranker's scores for a range of a student's queries.
    output:
        temp("<results>/parts/teachers/{system}/{scatteritem}.parquet"),
    log:
        "<logs>/teacher_part/{system}.{scatteritem}.log",
    benchmark:
        "<benchmarks>/teacher_part/{system}.{scatteritem}.tsv"
    resources:
        gpu=gpus_of("teacher"),
        mem_mb=memory_of("teacher_part"),
        runtime=minutes_of("teacher_part"),
    params:
        code=code("teacher"),
        settings=in_part(drawing),
        launch=launch,
        collection=folder("passages"),


use rule rerank_joined as teacher_joined with:
    # A reranker's scores for a student, from all ranges of its queries.
    input:
        gather.shards("<results>/parts/teachers/{{system}}/{scatteritem}.parquet"),
    output:
        "<results>/teachers/{system}.parquet",
    log:
        "<logs>/teacher_joined/{system}.log",
    benchmark:
        "<benchmarks>/teacher_joined/{system}.tsv"
    wildcard_constraints:
        system=only(taught),
    resources:
        mem_mb=memory_of("teacher_joined"),
        runtime=minutes_of("teacher_joined"),
