"""Which system to use, its cost, and what the page warns of, against the records of the run."""

import pandas as pd
import pytest
import synthetic_run
from synthetic_run import SMALL, mean, plain, tables_of

from cdmae import formats
from cdmae.commands import answering
from cdmae.config.load import load
from cdmae.errors import InputError
from cdmae.files import read_json, write_json
from cdmae.report import alarms, columns, comparisons, costs, notation, page
from cdmae.report.facts import Facts, Target
from cdmae.report.sections.use import use

DEV = Target("pydocs", "dev")
TEST = Target("pydocs", "test")


def first_screen(run, folder):
    """The section that says which system to use, its words and its table."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(page, "SECTIONS", {use: "Systems"})  # figures of others take a second
        page.write(run, folder)
    text = (folder / "index.html").read_text()
    section = text[text.index('<section id="use">') :]
    table = next(iter(tables_of(section).values()))
    return plain(section), table.set_index("system")


# --- costs ----------------------------------------------------------------------------------------


def test_the_cost_of_a_system_is_in_the_records_of_its_jobs_or_nan(tmp_path):
    """With all that it reads and learns from, each once."""
    run = synthetic_run.make(tmp_path)
    queries = sum(sum(splits.values()) for splits in SMALL.values())
    one = costs.cost(run, "cdmae-stage1")
    assert one.milliseconds == pytest.approx(1000 * 2 / queries)  # of the work alone
    assert one.minutes * 60 == pytest.approx(188.2 + 61)  # its pre-training and its own
    assert one.parameters != one.parameters and one.megabytes != one.megabytes  # not recorded
    bm25 = costs.cost(run, "bm25")
    assert (bm25.parameters, bm25.minutes) == (0, 0)
    assert bm25.milliseconds != bm25.milliseconds, "its log has no line on its work"
    # stages 1 to 3, the reranker that teaches, its first lesson, and one pre-training
    assert costs.cost(run, "fused").minutes * 60 == pytest.approx(188.2 + 5 * 61)


def test_the_pre_training_that_an_encoder_continues_is_a_part_of_its_cost(tmp_path):
    values = synthetic_run.config("bm25", "cdmae-stage1")
    values["encoders"]["cdmae"]["after"] = "mae"
    run = synthetic_run.make(tmp_path, values)
    write_json(run.at("encoder", encoder="mae") / "about.json", {"seconds": 1000.0})
    seconds = costs.cost(run, "cdmae-stage1").minutes * 60
    assert seconds == pytest.approx(1000 + 188.2 + 61)


def test_the_size_of_an_index_is_of_its_files_its_vectors_or_its_entries(tmp_path):
    run = synthetic_run.make(tmp_path / "run", synthetic_run.config("bm25", "mae-stage1"))
    (run.at("trained", system="mae-stage1") / "config.json").write_text('{"hidden_size": 128}')
    index = run.at("bm25", system="bm25", collection="pydocs")
    index.mkdir(parents=True)
    (index / "segment").write_bytes(bytes(5000))
    size = run.collections["pydocs"].passages * 128 * 4 / 1e6
    assert costs.cost(run, "mae-stage1").megabytes == pytest.approx(size)
    assert costs.cost(run, "bm25").megabytes == pytest.approx(0.005)
    row = {"collection": "pydocs", "megabytes": 3.5, "flops": 1.25, "passage_entries": 90.0}
    write_json(run.at("sparsity", system="mae-stage1"), [row])
    _, table = first_screen(Facts(run.config), tmp_path / "report")
    found = table.loc["mae-stage1", ["entries", "FLOPS", "index, MB"]]
    assert found.tolist() == ["90.0", "1.2", "3.5"]


# --- the choice -----------------------------------------------------------------------------------


def with_fusion(folder, share, **changes):
    """A run whose fusion was tuned on dev, where it is worth a share of BM25 by held-out weights."""
    skill = synthetic_run.SKILL | {"fused": 0.6}
    run = synthetic_run.make(folder, synthetic_run.config(**changes), skill=skill)
    system = "bm25" if share else "fused"
    held_out = (share or 1.0) * run.values[system, DEV, "RR@10"].iloc[:, 0]
    about = {"systems": ["bm25", "cdmae-stage3"], "weights": [0.8, 0.2]}
    about |= {"on": [*DEV], "measure": "RR@10", "held_out": dict(held_out)}
    write_json(run.at("fusion", system="fused"), about)
    return Facts(run.config, run.circumstances)


@pytest.mark.parametrize(("share", "pick"), [(None, "fused"), (1.0, "bm25"), (0.1, "bm25")])
def test_the_page_and_the_commands_choose_the_same_system_by_held_out_values(tmp_path, share, pick):
    """The fusion is above BM25 on dev as it was tuned, and not where other queries chose."""
    run = with_fusion(tmp_path, share)
    words, table = first_screen(run, tmp_path / "report")
    assert (
        f"{pick}: MRR@10" in words
        and "The queries of pydocs test were not used to choose it" in words
    )
    assert "0.8 × bm25 + 0.2 × cdmae-stage3" in words
    config = load(run.plain)
    assert answering.best_system(config, [*config.systems]) == pick
    if share:
        own = share * mean(run, "bm25", DEV)
        assert table.loc["fused", "pydocs dev"] == f"{100 * own:.1f}"
    assert table.index[0] == "fused", "on the reported split it has the highest mean"


def test_a_fusion_is_held_out_with_every_seed_and_shown_with_the_first(tmp_path):
    values = synthetic_run.config("bm25", "mae-stage1", "fused", seed=[42, 43])
    values["systems"]["fused"]["of"] = ["bm25", "mae-stage1"]
    run = synthetic_run.make(tmp_path, values, targets={"pydocs": {"dev": 30}}, trained=False)
    held_out = {f"dev-{number:05d}": 0.25 for number in range(30)}
    for name, part in (("fused", "mae-stage1"), ("fused@43", "mae-stage1@43")):
        about = {"systems": ["bm25", part], "weights": [0.8, 0.2], "held_out": held_out}
        write_json(run.at("fusion", system=name), about | {"on": [*DEV], "measure": "RR@10"})
    facts = Facts(run.config, run.circumstances)
    assert (facts.values["fused", DEV, "RR@10"] == 0.25).to_numpy().tolist() == [[True, True]] * 30
    words, _ = first_screen(facts, tmp_path / "report")
    assert "fused is 0.8 × bm25" in words and "@43" not in words


def test_exceeded_systems_are_in_the_order_of_the_table(tmp_path):
    values = synthetic_run.config("bm25")
    values["systems"] = {f"bm25-{number}": values["systems"]["bm25"] for number in range(28)}
    skill = {name: float(name[5:]) / 4 for name in values["systems"]}
    run = synthetic_run.make(tmp_path, values, skill=skill, targets={"pydocs": {"dev": 90}})
    _, table = first_screen(run, tmp_path / "report")
    found = table["exceeds"].iloc[0].split()
    assert {"z", "A", "B"} <= {*found} and found == [mark for mark in table["#"] if mark in found]


@pytest.mark.parametrize(("share", "worse"), [(0.1, True), (1.0, False)])
def test_the_answer_says_when_other_queries_favour_bm25(tmp_path, share, worse):
    values = synthetic_run.config("bm25", "mae-stage1", "cdmae-stage1")
    means = {"bm25": 1.9, "mae-stage1": 0.5, "cdmae-stage1": 1.7}
    run = synthetic_run.make(tmp_path, values, skill=means)
    run.values["mae-stage1", TEST, "RR@10"] *= share
    words, _ = first_screen(run, tmp_path / "report")
    own, bm25 = (notation.points(mean(run, name, TEST)) for name in ("mae-stage1", "bm25"))
    answer = f"mae-stage1: MRR@10 {own} on pydocs test"
    assert answer in words and "The queries of pydocs test were not used to choose it" in words
    assert (f"{answer}, where bm25 scores {bm25}" in words) == worse
    assert ("bm25 is significantly better there: use it" in words) == worse


@pytest.mark.parametrize(("skill", "small"), [(1.4, True), (-2.0, False)])
def test_few_queries_choose_only_by_a_significant_difference(tmp_path, skill, small):
    values = synthetic_run.config("bm25", "mae-stage1")
    means = {"bm25": 1.9, "mae-stage1": skill}
    run = synthetic_run.make(tmp_path, values, skill=means, targets={"pydocs": {"dev": 20}})
    words, table = first_screen(run, tmp_path / "report")
    assert ("This run is too small to choose." in words) == small
    assert ("mae-stage1: MRR@10" in words) != small
    assert "It was chosen on the same queries" in words and table.columns[1] == "pydocs dev"


@pytest.mark.parametrize(("asked", "deciding"), [(29, "made dev"), (30, "mine test"), (0, "")])
def test_made_queries_choose_only_where_people_asked_too_few(tmp_path, asked, deciding):
    values = synthetic_run.config("bm25", "fused", "mae-stage1")
    mine = {"source": "text", "path": str(tmp_path)}
    values["collections"] = {"mine": mine, "made": {"source": "pseudo", "of": mine}}
    for section in ("encoders", "stages"):
        for entry in values[section].values():
            entry |= {"collection": "made"} if "collection" in entry else {}
    tuned = {"of": ["bm25", "mae-stage1"], "method": "convex", "tuned_on": ["made", "dev"]}
    values["systems"]["fused"] |= tuned
    targets = {"made": {"dev": 50}, "mine": {"test": asked}} if asked else {"made": {"dev": 50}}
    run = synthetic_run.make(tmp_path, values, targets=targets, trained=False)
    words, table = first_screen(run, tmp_path / "report")
    assert table.loc["bm25", "exceeds"] == table.loc["mae-stage1", "#"]
    too_few = f"the {asked} queries of mine test are too few to choose"
    assert ("were made from its passages, not asked by people" in words) == (asked < 30)
    assert (too_few in words) == (asked == 29)
    assert str(run.deciding) == (deciding or "made dev")


def test_trainings_of_further_seeds_are_not_asked():
    config = load(synthetic_run.config(seed=[42, 43]))
    assert "mae-stage1@43" in config.systems
    assert [*answering.askable(config)] == [*synthetic_run.config()["systems"]]


# --- alarms ---------------------------------------------------------------------------------------


def noted(run, name, note):
    """Add a note to the record of a training."""
    about = run.at("trained", system=name) / "about.json"
    write_json(about, read_json(about) | {"notes": [note]})


def test_alarms_are_the_first_lines_and_name_whom_a_bad_teacher_taught(tmp_path):
    skill = synthetic_run.SKILL | {"cdmae-reranker": 9.0}
    run = synthetic_run.make(tmp_path / "run", skill=skill)
    noted(run, "cdmae-reranker", "at step 99 the outputs are < 5 times closer together")
    page.write(run, tmp_path / "report")
    text = (tmp_path / "report/index.html").read_text()
    main = text[text.index("<main>") :]
    assert main.index('<section id="alarms"') < main.index('<section id="use"')
    first = plain(main[: main.index('<section id="use"')])
    assert "at step 99 the outputs are < 5 times closer together. It taught cdmae-stage3" in first
    gap = comparisons.named(run, columns.reported(run))["cdmae-reranker", "cdmae-stage2"]
    assert f"{notation.points(-gap.difference)} points below cdmae-stage2" in first
    assert formats.plain_spaces(notation.probability(gap.p)) in first


def test_an_encoder_whose_decoder_does_not_use_the_vector_is_named(tmp_path):
    run = synthetic_run.make(tmp_path)
    for name, wrong in (("mae", 6.52), ("cdmae", 7.0)):
        losses = pd.DataFrame({"step": [9], "true": [6.5], "shuffled": [wrong], "zero": [6.6]})
        path = run.at("encoder", encoder=name) / "bottleneck.tsv"
        losses.to_csv(path, sep="\t", index=False)
    (alarm,) = alarms.alarms(run)
    assert alarm.name == "mae:" and "0.02 nats" in alarm.words


def test_a_retriever_below_its_published_checkpoint_is_named_with_p(tmp_path):
    values = synthetic_run.config()
    values["starts"] = {name: {"checkpoint": "org/model"} for name in values["starts"]}
    values["systems"]["published"] = {"kind": "external", "model": "org/model"}
    skill = synthetic_run.SKILL | {"published": 1.0}
    run = synthetic_run.make(tmp_path, values, skill=skill, targets={"pydocs": {"test": 400}})
    gap = columns.difference(run, columns.reported(run), "cdmae-stage1", "published")
    found = {one.name: one for one in alarms.alarms(run)}
    words = found["cdmae-stage1"].words
    assert notation.probability(gap.p) in words and notation.points(-gap.difference) in words
    assert "Usual causes" in found["cdmae-stage1"].causes


def test_systems_with_fewer_judged_passages_than_others_are_named(tmp_path):
    values = synthetic_run.config("bm25", "mae-stage1", "cdmae-stage1")
    values["collections"]["asked"] = {"source": "queries", "of": "pydocs", "path": str(tmp_path)}
    values["evaluation"]["measures"] = ["RR@10", "Judged@10"]
    targets = {"pydocs": {"dev": 30}, "asked": {"test": 30}}
    run = synthetic_run.make(tmp_path / "run", values, targets=targets)
    for split, collection in (("dev", "pydocs"), ("test", "asked")):
        for share, name in zip((1.0, 0.95, 0.7), run.systems, strict=True):
            run.values[name, Target(collection, split), "Judged@10"][:] = share
    (alarm,) = alarms.alarms(run)
    assert alarm.name == "cdmae-stage1" and "70 % of its best ten" in plain(alarm.words)


def test_measures_of_different_queries_are_refused(tmp_path):
    values = synthetic_run.config(seed=[42, 43])
    run = synthetic_run.make(tmp_path, values, targets=SMALL)
    other = run.at("measures", system="mae-stage1@43")
    other.write_text(other.read_text().replace("dev-00007", "dev-99999"))
    with pytest.raises(InputError, match="on pydocs dev are for different queries"):
        assert run.values
