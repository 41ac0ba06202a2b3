"""The metadata of a TREC run name its systems, data and measures in ir_metadata's schema."""

from pathlib import Path

import yaml

from cdmae.config.load import load
from cdmae.config.reading import gather
from cdmae.exporting import primad
from workflow.facts import trec

CONFIG = Path(__file__).resolve().parents[2] / "config/config.yaml"


def test_a_fusion_is_described_after_the_systems_that_it_reads(tmp_path):
    config = load(gather(CONFIG, []))
    primad.write(tmp_path / "run.yaml", trec(config, "fused", "pydocs", "test"))
    found = yaml.safe_load((tmp_path / "run.yaml").read_text())
    assert found["tag"] == "fused" and found["method"]["automatic"] is True
    components = {each["name"]: each for each in found["method"]["retrieval"]}
    *parts, last = components
    assert last == "fused" and components[last]["interpolates"] == config.systems["fused"].parts()
    assert set(components[last]["interpolates"]) <= set(parts)
    assert found["data"]["test collection"] == {
        "name": "pydocs",
        "source": "pydocs",
        "topics": "test",
    }
    assert found["research goal"]["evaluation"]["reported measures"][0] == "RR@10"
    assert {"platform", "implementation"} <= found.keys()
