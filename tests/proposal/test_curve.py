"""The overlay of `./run curve`: every encoder with several numbers of training queries."""

import pytest
from test_proposal import beir

from cdmae.config.load import load
from cdmae.config.reading import gather
from cdmae.errors import InputError
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
    names = ("made-queries", "stage1-100", "stage1-1000", "stage1")
    assert config.report.curve == names
    numbers = [config.stages[name].train_queries for name in names]
    assert numbers == [0, 100, 1000, 0]
    assert [config.stages[name].queries for name in names] == [128, 12, 125, 128]
    assert [config.stages[name].epochs for name in names] == [4, 20, 4, 4]
    made = config.collections[config.stages["made-queries"].collection]
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
        (["--labels", "5000"], "stages.stage1-5000.train_queries is 5000; allowed: up to 4000"),
        (["--stage", "reranker"], "--stage is reranker; allowed: stage1, stage2, stage3"),
        (["--stage", "stage3"], "--stage is stage3, whose systems have a teacher"),
        (["--encoders", "none,mea"], "--encoders has mea; did you mean mae?"),
    ],
)
def test_a_wrong_choice_writes_nothing(curve, tmp_path, words, sentence):
    with pytest.raises(InputError, match=sentence):
        curve(*words)
    assert not (tmp_path / "curve.yaml").exists()
