"""Every setting of a training arrives: another value of it changes the weights that are written.

For each class of the config and for each of its settings, two tiny trainings by the trainers' own
commands.
"""

import hashlib
import shutil
from dataclasses import replace

import pandas as pd
import pytest
from other_values import BESIDE, REMEDY, VALUES, others, tried
from pydantic import ValidationError
from tiny_objectives import OBJECTIVES, as_objective
from tiny_tokenizers import write_tokens
from tiny_training import stage, train, write_teacher, write_tiny

from cdmae.collections.store import Collection, read_passages, read_queries, write_collection
from cdmae.config.importance import Importance
from cdmae.config.objectives import Mae, NotPretrained
from cdmae.config.stages import AnyStage
from cdmae.config.starts import Start
from cdmae.errors import InputError
from cdmae.fields import kinds_of, pick, rules_of
from cdmae.importance import ami, ngrams
from cdmae.pretraining import trainer
from cdmae.tokens import tokenise
from cdmae.tokens.corpus import read_tokens

# settings that one piece of code reads for all classes; they are tried on the first class alone
SHARED = {
    "learning_rate", "weight_decay", "max_grad_norm", "warmup_ratio", "warmup_steps", "epochs",
    "steps", "take_step", "split", "train_queries", "queries", "depth",
    "random_negatives",
}  # fmt: skip
OF_PRETRAINING = {"batch", "precision"}
OF_RETRIEVERS = {
    "chunk", "precision", "query_length", "passage_length", "query_prompt", "passage_prompt",
    "group", "labels", "margin_bins",
}  # fmt: skip
START = Start(
    collection="c", vocabulary=160, layers=3, hidden=16, heads=2, feedforward=24, positions=64,
    initializer=0.1,
)  # fmt: skip
PRETRAINING = Mae(
    start="s", collection="c", importance="i", encoder_masking="uniform",
    decoder_masking="importance", max_length=24, batch=6, epochs=0.15, steps=3, warmup_ratio=0.4,
    learning_rate=1e-2, weight_decay=0.1, max_grad_norm=0.1, precision="fp32",
)  # fmt: skip
UNIFORM = {"encoder_masking": "uniform", "decoder_masking": "uniform"}
NAMES = ["mae", *(name for name in OBJECTIVES if name not in ("mae", "none"))]
STAGES = kinds_of(AnyStage)


def check(settings, outcome, values=VALUES, *, unread=(), without=(), apart=""):
    """Compare the outcomes of other values of each setting with that of `settings`.

    outcome: a function of settings, and of the setting that is tried. unread: the settings that
    must not change it. without: settings that are not tried. apart: a setting whose outcomes have
    inputs of their own.
    """
    first = outcome(settings, "")
    assert first == outcome(settings, ""), "equal settings have different outcomes"
    faults = []
    for key, rule in tried(settings).items():
        if key in without:
            continue
        beside = pick(BESIDE.get(key, {}), rules_of(settings))
        before = replace(settings, **beside)
        after = another(before, key, rule, values)
        name = f"{type(settings).__name__}.{key}"
        if after is None:
            faults.append(f"{name}: no other value than {getattr(before, key)} is known")
            continue
        known = first if before == settings and key != apart else outcome(before, key)
        same = known == outcome(after, key)
        if same != (key in unread and not beside):
            what = "changes nothing" if same else "has an effect, though it is said to have none"
            value = getattr(after, key)
            faults.append(f"{name}: {value} instead of {getattr(before, key)} {what}")
    assert not faults, "\n".join([*faults, REMEDY])


def another(settings, key, rule, values):
    """The settings with another value of one of them; None if no other is known and allowed."""
    for other in others(key, rule, getattr(settings, key), values):
        try:
            return replace(settings, **{key: other})
        except (InputError, ValidationError):
            continue
    return None


def hash_of(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.fixture(scope="module")
def given(tmp_path_factory):
    """What trainings read: a collection with two judged splits, tokens, importance, texts, models,
    scores.
    """
    folder = tmp_path_factory.mktemp("arrival")
    tiny = write_tiny(folder, end=" .")
    asked = read_queries(tiny.collection, "train")[["query_id", "text"]]
    judged = pd.DataFrame({"query_id": asked["query_id"], "grade": 1})
    judged["passage_id"] = [f"p{row}" for row in range(len(asked))]
    splits = {"train": asked, "again": asked.iloc[::-1]}
    qrels = dict.fromkeys(splits, judged)
    passages = read_passages(tiny.collection)
    write_collection(folder / "both", Collection(passages, splits, qrels, {}))
    importance_of(Importance(window=3), read_tokens(tiny.tokens), folder)
    texts = [f"p{row}\t{text}\n" for row, text in enumerate(reversed(tiny.passages))]
    (folder / "texts.tsv").write_text("".join(texts))
    for seed in (1, 2):
        run(NotPretrained(start="s"), START, tiny.encoder, folder / f"start{seed}", seed=seed)
    write_teacher(folder / "teacher.parquet")
    train(tiny, folder / "second", stage("retriever", epochs=0.25))
    return folder, tiny


def importance_of(settings, tokens, folder):
    """Write the importance of word-pieces; return its hash."""
    ngrams.count_to(folder / "ngrams", tokens, **settings.counting())
    formula = {key: getattr(settings, key) for key in ("pmi", "normaliser", "edges")}
    ami.estimate(folder / "importance", folder / "ngrams", tokens, formula)
    return hash_of(folder / "importance" / "values.npy")


def run(settings, start, tokenizer, output, *, seed=1, **inputs):
    """Pre-train; return the hash of the weights."""
    files = trainer.Files(tokenizer, **inputs)
    how = {"name": "x", "settings": settings, "start": start, "files": files, "seed": seed}
    state = output.with_suffix(".state")
    shutil.rmtree(state, ignore_errors=True)  # of the training before
    trainer.pretrain(**how, state=state, output=output)
    return hash_of(output / "model.safetensors")


@pytest.mark.parametrize("name", NAMES)
def test_every_setting_of_a_pre_training_reaches_its_weights(given, tmp_path, name):
    """All but those that it says to have no effect; these change nothing."""
    folder, tiny = given
    start = Start(checkpoint=str(folder / "start1"))
    files = {"generator": str(folder / "start2"), "texts": (str(folder / "texts.tsv"),)}
    read = {"tokens": tiny.tokens, "importance": folder / "importance"}

    def outcome(settings, key):
        return run(settings, start, tiny.encoder, tmp_path / "encoder", **read)

    settings = as_objective(name, PRETRAINING)
    if not settings.masked_by_importance:
        settings = replace(settings, encoder_masking="importance")
    without = SHARED | OF_PRETRAINING if name != NAMES[0] else ()
    check(settings, outcome, VALUES | files, unread=settings.unread, without=without)
    plain = replace(settings, **pick(UNIFORM, rules_of(settings)))
    assert "sigma" in plain.unread
    assert outcome(plain, "sigma") == outcome(replace(plain, sigma=8.0), "sigma")


@pytest.mark.parametrize("kind", STAGES, ids=lambda kind: kind.__name__)
def test_every_setting_of_a_stage_reaches_its_weights(given, tmp_path, kind):
    folder, tiny = given
    of_retrievers = "head" in rules_of(kind)
    head = rules_of(kind)["head"].default if of_retrievers else "reranker"
    how = {"epochs": 0.75, "warmup_steps": 1.0, "weight_decay": 0.1, "max_grad_norm": 0.1}
    how |= {"flops_warmup": 1.0} if "flops_warmup" in rules_of(kind) else {}
    recipe = stage("retriever" if head == "dense" else head, alpha=4.0, **how)
    assert type(recipe) is kind
    read = {"collection": folder / "both", "teacher": folder / "teacher.parquet"}
    second = {"in_batch_teacher": folder / "second" / "model"}

    def outcome(recipe, key):
        inputs = read | second if key == "in_batch_weight" else read
        return hash_of(train(tiny, tmp_path, recipe, **inputs) / "model.safetensors")

    without = () if kind is STAGES[0] else SHARED | (OF_RETRIEVERS if of_retrievers else set())
    check(recipe, outcome, without=without, apart="in_batch_weight")


def test_every_setting_of_random_weights_reaches_the_weights_of_a_pre_training(given, tmp_path):
    _, tiny = given
    tokenizer, tokens = tmp_path / "tokenizer", tmp_path / "tokens"
    texts = [*tiny.passages, *(text.replace("e", "é") for text in tiny.passages)]
    settings = replace(as_objective("mlm", PRETRAINING), encoder_masking="uniform")

    def outcome(start, key):
        trained = tokenise.train_tokenizer(texts, start.vocabulary, start.strip_accents)
        trained.save_pretrained(tokenizer)
        passages = read_passages(tiny.collection)
        write_tokens(tokens, tokenise.Tokeniser(tokenizer).tokens(passages))
        return run(settings, start, tokenizer, tmp_path / "encoder", tokens=tokens)

    check(START, outcome)


def test_every_setting_of_importance_reaches_its_values(given, tmp_path):
    tokens = read_tokens(given[1].tokens)
    check(Importance(window=3), lambda settings, key: importance_of(settings, tokens, tmp_path))
