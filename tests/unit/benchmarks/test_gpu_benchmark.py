"""The GPU benchmark, at a size where a processor can: both sides compute the same, are timed, and stand in a table."""

import json
import sys
from itertools import product
from pathlib import Path

import pytest
import torch

pytest.importorskip("transformers", reason="the extra 'hf' is not installed")
sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))
from gpu import CASES, Measured, Side, main, our_steps, sides_of, table
from gpu import TINY as TINY_CASES

pytestmark = pytest.mark.heavy

TINY = ["--device", "cpu", "--tiny", "--steps", "1"]


def test_a_case_is_measured_beside_the_peer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main([*TINY, "--json", str(tmp_path / "a.json"), "tiny-32-half"])
    assert "same weights, same batch: loss" in capsys.readouterr().out
    found = json.loads((tmp_path / "a.json").read_text())
    sides = ["bertwright, fp32, packed, eager", "bertwright, fp32, padded, eager", "transformers"]
    assert [row["side"] for row in found["rows"]] == sides
    assert all(row["tokens"] > row["sequences"] > 0 and row["teraflops"] > 0 for row in found["rows"])


def test_one_side_is_measured_alone(tmp_path: Path) -> None:
    main([*TINY, "--side", "padded", "--json", str(tmp_path / "a.json"), "tiny-32-half"])
    (row,) = json.loads((tmp_path / "a.json").read_text())["rows"]
    assert row["side"] == "bertwright, fp32, padded, eager"


def test_half_filled_rows_are_trained_in_both_layouts() -> None:
    every = list(product(("base", "large"), (128, 512), (True, False)))
    assert [(case.size, case.length, case.filled) for case in CASES] == every
    full, half = ([(side.name, side.kernel) for side in sides_of(case, gpu=True)] for case in CASES[2:4])
    assert full == [
        ("bertwright, bf16", "varlen"),
        ("bertwright, bf16, eager", "padded"),
    ]
    assert half == [
        ("bertwright, bf16, packed", "varlen"),
        ("bertwright, bf16, padded", "padded"),
        ("bertwright, bf16, packed, eager", "padded"),
        ("bertwright, bf16, padded, eager", "padded"),
        ("bertwright, bf16, padded, eager, without cuDNN", "padded"),
    ]


def test_a_side_without_cudnns_attention_leaves_the_others_theirs() -> None:
    for cudnn in (False, True):
        side = Side("fp32", "padded", compiled=False, cudnn=cudnn)
        next(our_steps(TINY_CASES[1], side, torch.device("cpu")))
        assert torch.backends.cuda.cudnn_sdp_enabled() is cudnn


def test_the_table_says_how_many_times_the_peer() -> None:
    rows = [
        Measured("a", "bertwright", 20, 2000, 300.0, 0.4, 30.5),
        Measured("a", "transformers", 10, 1000, 150, 0.2, 60),
    ]
    assert table(rows).splitlines()[2:] == [
        "| a | bertwright | 20 | 2,000 | 300.0 | 40% | 30.5 | 2.00 |",
        "| a | transformers | 10 | 1,000 | 150.0 | 20% | 60.0 | 1.00 |",
    ]


def test_without_a_gpu_it_says_so() -> None:
    with pytest.raises(SystemExit, match="torch sees no GPU here"):
        main([])
