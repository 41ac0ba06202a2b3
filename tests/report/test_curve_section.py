"""The section on numbers of training queries."""

import numpy as np
import pandas as pd
import pytest
import synthetic_run

from cdmae.report.facts import Facts, Target
from cdmae.report.records import Training
from cdmae.report.sections import curve

DEV = Target("pydocs", "dev")
NUMBERS = {"made": 3000, "few": 100, "stage1": 4000}
MEANS = {"none": (0.1, 0.2, 0.5), "cdmae": (0.2, 0.4, 0.5)}


@pytest.fixture
def facts():
    """Two encoders with made queries, with 100 and with all training queries, beside BM25."""
    config = synthetic_run.config()
    config["evaluation"] = {"collections": {"pydocs": ["dev"]}, "measures": ["RR@10"]}
    config["stages"]["made"] = config["stages"]["stage1"] | {"collection": "made"}
    config["stages"]["few"] = config["stages"]["stage1"] | {"train_queries": 100}
    config["report"] = {"curve": [*NUMBERS], "compare": {}}
    index = [f"q{number}" for number in range(40)]
    noise = np.random.default_rng(1).normal(0, 0.01, 40)
    values = {("bm25", DEV, "RR@10"): pd.DataFrame({"42": np.full(40, 0.3)}, index)}
    trained = {}
    for encoder, means in MEANS.items():
        for (stage, number), mean in zip(NUMBERS.items(), means, strict=True):
            name = f"{encoder}-{stage}"
            base = config["systems"]["cdmae-stage1"]
            config["systems"][name] = base | {"encoder": encoder, "stage": stage}
            values[name, DEV, "RR@10"] = pd.DataFrame({"42": mean + noise}, index)
            trained[name] = Training(about={"queries": number})
            if encoder == "cdmae":
                config["report"]["compare"][name] = [f"none-{stage}"]
    return Facts(config, values, trained=trained)


def test_the_table_compares_encoders_with_equally_many_queries(facts):
    (table,) = curve.section(facts).tables
    assert [row[:2] for row in table.rows] == [
        [number, encoder]
        for number in ("0 (3,000 made)", "100", "4,000")
        for encoder in ("none", "cdmae")
    ]
    gains = [row[3].text for row in table.rows if row[1] == "cdmae"]
    assert gains == ["+10.0", "+20.0", "0.0"]


def test_an_encoder_of_another_stage_has_its_place_by_its_number_of_queries(facts):
    base = facts.config["systems"]["cdmae-few"]
    facts.config["stages"]["other"] = facts.config["stages"]["few"]
    facts.config["systems"]["large"] = base | {"encoder": "mae", "stage": "other"}
    facts.config["report"]["curve"] = ["other", *NUMBERS]
    values = facts.values | {("large", DEV, "RR@10"): facts.values["none-few", DEV, "RR@10"]}
    trained = facts.trained | {"large": Training(about={"queries": 100})}
    (table,) = curve.section(Facts(facts.config, values, trained=trained)).tables
    assert [row[:2] for row in table.rows] == [
        *(["0 (3,000 made)", encoder] for encoder in ("none", "cdmae")),
        *(["100", encoder] for encoder in ("mae", "none", "cdmae")),
        *(["4,000", encoder] for encoder in ("none", "cdmae")),
    ]


def test_the_figure_has_a_line_per_encoder_and_bm25(facts):
    (figure,) = curve.section(facts).figures
    drawn = figure.standalone()
    for words in ("none", "cdmae", "bm25", "0 (3,000 made)", "training queries"):
        assert words in drawn


def test_a_config_without_a_curve_has_no_section(facts):
    facts.config["report"]["curve"] = []
    assert curve.section(Facts(facts.config, facts.values)) is None
