"""The benchmark of saving saves what it says, and its sentences have both ways."""

import re
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))
import saving as program


def test_both_ways_are_told(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(program, "LARGEST", 300)
    monkeypatch.setattr(sys, "argv", ["saving.py", "--parameters", "1e3", "--saves", "2", "--folder", str(tmp_path)])
    program.main()
    first, second = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"a checkpoint of 1,000 parameters takes \d+\.\d\d s", first)
    assert re.fullmatch(
        r"written beside training: [\d.]+ s are waited the first time, then [\d.]+ s \([\d.]+%\)", second
    )
    assert not list(tmp_path.iterdir())


def test_the_made_up_network_has_so_many_parameters(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(program, "LARGEST", 300)
    tensors = program.made_up(1000, "cpu")
    assert [tensor.numel() for tensor in tensors.weights.values()] == [300, 300, 300, 100]
    assert sum(tensor.numel() for tensor in tensors.moments.values()) == 2001
