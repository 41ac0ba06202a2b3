"""The words for a machine, from what Linux writes about it."""

from cdmae.describe import describe


def test_a_machine_with_gpus(tmp_path):
    (tmp_path / "cpuinfo").write_text(
        "".join(f"processor\t: {core}\nmodel name\t: Fast (R) 9\n" for core in range(2))
    )
    (tmp_path / "meminfo").write_text("MemTotal:       24660000 kB\nMemFree: 1 kB\n")
    for number in range(2):
        card = tmp_path / f"driver/nvidia/gpus/0000:0{number}/information"
        card.parent.mkdir(parents=True)
        card.write_text("Model: \t\t NVIDIA H100\nIRQ: 1\n")
    found = describe(tmp_path)
    assert found["processor"].startswith("Fast (R) 9, ")
    assert (found["memory"], found["GPU"]) == ("24 GB", "2 x NVIDIA H100")


def test_a_machine_that_says_nothing(tmp_path):
    found = describe(tmp_path)
    assert found["GPU"] == "none" and "memory" not in found
    assert all(found.values())
