"""The overlay of `./run curve`: every encoder with several numbers of training queries."""

import re

import pytest
from test_proposal import beir

from cdmae.config.load import load
from cdmae.config.reading import gather
from cdmae.errors import InputError
from cdmae.finetuning import common
from cdmae.proposal import learning_curve
from workflow import commands
from workflow.commands import proposing

DEFAULT = proposing.ROOT / "config/config.yaml"


@pytest.fixture
def curve(tmp_path, monkeypatch, capsys):
    """A function that runs the command, and returns the overlaid config and what was printed."""
    monkeypatch.chdir(tmp_path)
    planned = []
    monkeypatch.setattr(proposing, "plan", lambda configfile: planned.append(configfile))

    def run(*words, configs=()):
        monkeypatch.chdir(tmp_path)  # the command changes to the checkout
        configfile = ["--configfile", *map(str, configs)] if configs else []
        commands.command(["curve", *words, *configfile])
        files = [*configs, tmp_path / "curve.yaml"]
        assert [str(file) for file in files] == planned.pop()
        return load(gather(DEFAULT, files)), capsys.readouterr().out

    return run


def test_every_encoder_is_fine_tuned_with_every_number(curve):
    config, said = curve("--labels", "1000,0,100")
    names = ("stage1-0", "stage1-100", "stage1-1000", "stage1")
    assert config.report.curve == names
    numbers = [config.stages[name].train_queries for name in names]
    assert numbers == [0, 100, 1000, 0]
    assert [config.stages[name].queries for name in names] == [125, 12, 125, 128]
    assert [config.stages[name].epochs for name in names] == [4, 4, 4, 4]
    made = config.collections[config.stages["stage1-0"].collection]
    assert made.source == "pseudo" and made.settings.of["source"] == "pydocs"
    trained = {
        (system.encoder, system.stage)
        for system in config.systems.values()
        if system.kind == "retriever" and system.stage in names
    }
    assert trained == {(encoder, name) for encoder in ("none", "mae", "cdmae") for name in names}
    for name in names[:-1]:
        assert config.report.compare[f"cdmae-{name}"] == (f"none-{name}",)
    assert config.report.compare["cdmae-stage1"] == ("mae-stage1", "none-stage1")
    assert "next: ./run --configfile curve.yaml" in said


def test_all_numbers_have_as_many_steps_as_the_largest(curve):
    config, _ = curve("--labels", "100,300,1000,3000")
    numbered = [config.stages[name] for name in config.report.curve[:-1]]
    assert [common.steps_of(stage, stage.train_queries, "any") for stage in numbered] == [92] * 4


def test_made_queries_are_as_many_as_the_largest_number(curve):
    config, _ = curve("--labels", "0,200")
    made, labelled = (config.stages[name] for name in ("stage1-0", "stage1-200"))
    assert (made.queries, made.epochs) == (labelled.queries, labelled.epochs) == (25, 4)
    assert config.collections[made.collection].settings.queries == 200


def test_few_queries_are_seen_20_times_at_most(curve):
    twice_as_long = DEFAULT.parent / "sparse.yaml"
    config, _ = curve("--labels", "100,3000", configs=[twice_as_long])
    assert [config.stages[f"stage1-{count}"].epochs for count in (100, 3000)] == [20, 8]


def test_all_points_are_searched_in_the_same_way(curve):
    config, _ = curve(
        "--labels", "100", "--stage", "multi", configs=[DEFAULT.parent / "multi.yaml"]
    )
    assert config.systems["cdmae-multi-100"].candidates == "bm25"
    assert config.systems["cdmae-multi-100"].negatives == "bm25"


def test_a_curve_does_not_overwrite_its_config(curve, tmp_path):
    (tmp_path / "mine.yaml").write_text("seed: 42\n")
    with pytest.raises(InputError, match="--to is mine.yaml, which --configfile names, too"):
        curve("--to", "mine.yaml", "--force", configs=[tmp_path / "mine.yaml"])


def test_the_usual_numbers_are_tried_as_far_as_there_are_queries(curve, tmp_path, monkeypatch):
    config, _ = curve()
    numbers = [config.stages[name].train_queries for name in config.report.curve]
    assert numbers == [0, 100, 300, 1000, 3000, 0]
    (tmp_path / "few.yaml").write_text("stages: {stage1: {train_queries: 300}}\n")
    config, _ = curve("--force", configs=[tmp_path / "few.yaml"])
    assert config.report.curve == ("stage1-0", "stage1-100", "stage1")
    monkeypatch.setattr(proposing, "published_encoder", lambda *_: None)
    judged = beir(tmp_path / "mine", train=110, test=10)
    corpus = judged / "corpus.jsonl"
    corpus.write_text(re.sub(r"(?<=\. )[a-z]", lambda m: m[0].upper(), corpus.read_text()))
    mine = str(tmp_path / "my.yaml")
    commands.command(["new", str(judged), "--to", mine])
    config, _ = curve("--force", configs=[tmp_path / "my.yaml"])
    assert config.report.curve == ("stage1-0", "stage1")  # dev gets 11 of the 110
    for file in (judged / "qrels").iterdir():
        file.unlink()
    commands.command(["new", str(judged), "--to", mine, "--force"])
    with pytest.raises(InputError, match="has [0-9]+ training queries; name numbers below"):
        curve("--force", configs=[tmp_path / "my.yaml"])


def test_without_first_sentences_only_a_named_0_is_refused(curve, tmp_path, monkeypatch):
    monkeypatch.setattr(proposing, "published_encoder", lambda *_: None)
    monkeypatch.setattr(learning_curve, "NUMBERS", (0, 20, 40))
    mine = [tmp_path / "my.yaml"]
    commands.command(["new", str(beir(tmp_path / "mine", train=60, test=20))])
    config, said = curve(configs=mine)
    assert config.report.curve == ("stage1-20", "stage1-40", "stage1")
    assert not any(each.source == "pseudo" for each in config.collections.values())
    assert re.search("^labels +without 0: 0 needs .* none of the 120 passages", said, re.MULTILINE)
    _, said = curve("--labels", "20", "--force", configs=mine)
    assert "without 0" not in said
    with pytest.raises(InputError, match="none of the 120 passages"):
        curve("--labels", "0,20", "--force", configs=mine)
    monkeypatch.setattr(learning_curve, "NUMBERS", (0, 100))
    with pytest.raises(InputError, match="too few training .* none of the 120 .* --labels"):
        curve("--force", configs=mine)


def test_encoders_of_several_stages_keep_their_settings(curve):
    two = DEFAULT.parent / "labels.yaml"
    config, _ = curve("--labels", "0,1000", "--stage", "stage1,minilm", configs=[two])
    assert config.report.curve == (
        *("stage1-0", "stage1-1000", "stage1"),
        *("minilm-0", "minilm-1000", "minilm"),
    )
    rates = {config.stages[name].learning_rate for name in config.report.curve[3:]}
    assert rates == {config.stages["minilm"].learning_rate}
    assert config.stages["minilm-0"].collection == config.stages["stage1-0"].collection
    trained = {
        (system.encoder, system.stage)
        for system in config.systems.values()
        if system.kind == "retriever"
    }
    assert trained == {
        *((name, stage) for name in ("none", "mlm", "cdmae") for stage in config.report.curve[:3]),
        *(("minilm", stage) for stage in config.report.curve[3:]),
    }
    assert config.report.compare["minilm-minilm-1000"] == ("none-stage1-1000",)


OTHER_STAGES = """
stages:
  further: {kind: retriever}
  again: {kind: retriever}
  medical: {kind: retriever, collection: medical}
collections:
  medical: {source: pydocs, size: smoke}
systems:
  again: {kind: retriever, encoder: mae, stage: again, negatives: bm25}
  medical: {kind: retriever, encoder: other, stage: medical, negatives: bm25}
  further: {kind: retriever, encoder: mae, after: again, stage: further, negatives: bm25}
encoders:
  other: {objective: mlm}
"""


@pytest.mark.parametrize(
    ("stages", "sentence"),
    [
        ("stage1,again", "--stage has stage1 and again, which both train the encoder mae"),
        ("further", "--stage has further, whose systems continue from again; allowed: a stage"),
        ("stage1,medical", "stage1 trains on pydocs and medical trains on medical; allowed"),
    ],
)
def test_stages_that_share_no_figure_are_refused(curve, tmp_path, stages, sentence):
    (tmp_path / "two.yaml").write_text(OTHER_STAGES)
    with pytest.raises(InputError, match=sentence):
        curve("--stage", stages, configs=[tmp_path / "two.yaml"])


def test_it_overlays_any_config(curve, tmp_path, monkeypatch):
    monkeypatch.setattr(proposing, "published_encoder", lambda *_: None)
    commands.command(["new", str(beir(tmp_path / "mine", train=60, test=20))])
    config, said = curve("--labels", "20,40", configs=[tmp_path / "my.yaml"])
    assert config.report.curve == ("stage1-20", "stage1-40", "stage1")
    assert config.systems["base-stage1-20"].encoder == "base"
    assert not any(each.source == "pseudo" for each in config.collections.values())
    assert "next: ./run --configfile my.yaml curve.yaml" in said
    with pytest.raises(InputError, match=r"curve\.yaml exists; --force overwrites it"):
        curve("--labels", "20", configs=[tmp_path / "my.yaml"])


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--labels", "0,few"], "--labels has few; allowed: whole numbers"),
        (["--labels", "5000"], "stages.stage1-5000.train_queries is 5000; expected up to 4000"),
        (["--stage", "reranker"], "--stage has reranker; expected stage1, stage2, stage3"),
        (["--stage", "stage3"], "--stage has stage3, whose systems have a teacher"),
        (["--stage", "stage2"], "stage2, whose systems have negatives of cdmae-stage1, which is"),
        (["--encoders", "none,mea"], "--encoders has mea; did you mean mae?"),
    ],
)
def test_a_wrong_choice_writes_nothing(curve, tmp_path, words, sentence):
    with pytest.raises(InputError, match=sentence):
        curve(*words)
    assert not (tmp_path / "curve.yaml").exists()
