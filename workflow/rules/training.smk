# Pre-training, by default of masked auto-encoders (equations 1 to 6 and 9), whose decoder is
# discarded. Stages 1 to 3 and the reranker (equations 10 and 11) are config entries, and differ in
# the system that gives their negatives. A killed training resumes from params.state (cdmae/job.py).
# Both trainers take their inputs as one argument, the classes Files and Inputs.

SCORED = {row["scores_of"] for row in tables["system"].values() if row.get("scores_of")}


rule pretrain:
    """An encoder, pre-trained by its objective; with objective none, its initial weights."""
    input:
        tokenizer=of("<results>/tokenizers/{encoder.start}"),
        checkpoint=files_of("{encoder.checkpoint}"),
        after=of("<results>/encoders/{encoder.after}"),
        tokens=of("<results>/tokens/{encoder.start}/{encoder.corpus}"),
        importance=of("<results>/{encoder.importance_folder}"),
        generator=files_of("{encoder.generator}"),
    output:
        directory("<results>/encoders/{encoder}"),
    log:
        "<logs>/pretrain/{encoder}.log",
    conda:
        environment
    threads: network_cores
    resources:
        gpu=gpus_of_training,
        nodes=1,
        mem_mb=memory(32000, times=3, is_training=True),
        runtime=1440,
    params:
        call="cdmae.pretraining.trainer.pretrain",
        code=code("cdmae.pretraining.trainer", modules_of),
        contents=contents_of("{encoder.checkpoint}", "{encoder.generator}"),
        settings=pretraining,
        state=lambda wildcards, output: f"{results}/state/pretrain/{wildcards.encoder}",
    script:
        "../scripts/call.py"


rule train:
    """A retriever or a reranker: equation 10 or list-wise, or equation 11 with a teacher."""
    input:
        encoder=of("<results>/encoders/{system.encoder}"),
        after=of("<results>/trained/{system.after}"),
        collection=of("<results>/collections/{system.corpus}/{file}"),
        tokens=of("<results>/tokens/{system.start}/{system.passages}"),
        negatives=of("<results>/runs/{system.negatives}/{system.corpus}.{system.split}"),
        teacher=of("<results>/teachers/{system.scores_of}.parquet"),
        ranking=of("<results>/runs/{system.ranking}"),
        in_batch_teacher=of("<results>/trained/{system.in_batch_teacher}"),
        joint_teacher=of("<results>/trained/{system.joint_teacher}"),
    output:
        directory("<results>/trained/{system}"),
    log:
        "<logs>/train/{system}.log",
    wildcard_constraints:
        system=only(systems.trained(settings)),
    conda:
        environment
    threads: network_cores
    resources:
        gpu=gpus_of_training,
        nodes=1,
        mem_mb=memory(32000, times=3, is_training=True),
        runtime=1440,
    params:
        call="cdmae.finetuning.task.train",
        code=code("cdmae.finetuning.task", trainer_of),
        settings=training,
        state=lambda wildcards, output: f"{results}/state/train/{wildcards.system}",
    script:
        "../scripts/call.py"


rule teacher:
    """A reranker's scores of the candidates and judged passages of a student, {system}."""
    input:
        model=of("<results>/trained/{system.teacher}"),
        collection=of("<results>/collections/{system.corpus}/{file}"),
        tokens=of("<results>/tokens/{system.teacher_start}/{system.passages}"),
        negatives=of("<results>/runs/{system.negatives}/{system.corpus}.{system.split}"),
    output:
        "<results>/teachers/{system}.parquet",
    log:
        "<logs>/teacher/{system}.log",
    wildcard_constraints:
        system=only(SCORED),
    conda:
        environment
    threads: lambda wildcards: network_cores(teacher_of(wildcards))
    resources:
        gpu=lambda wildcards: gpus(1)(teacher_of(wildcards)),
        runtime=1440,
    params:
        call="cdmae.retrieval.reranking.teacher",
        code=code("cdmae.retrieval.reranking", lambda wildcards: [type(stage_of(wildcards))]),
        settings=lambda wildcards: {"settings": stage_of(wildcards).drawn()},
    script:
        "../scripts/call.py"
