"""`bertwright bench train`: its options, its table, its JSON."""

import json
from typing import Any

import pytest
from tests.pipeline.command import bertwright
from typer.testing import CliRunner

from bertwright.bench import run as bench_run
from bertwright.bench.run import Measurement, Setting
from bertwright.bench.workload import Precision, Training
from bertwright.cli import bench as verb
from bertwright.cli.bench import verbs
from bertwright.estimate import machine_facts as machine

pytestmark = pytest.mark.heavy

OURS = Measurement("full-128", "bertwright", "bf16", 0.5, 0.4, 0.7, 0.9, 1, 1, 1, 1, 1.31, 1.85)
PEER = Measurement("full-128", "trainer", "bf16", 1.7, 1.6, 1.8, 3.1, 3.4, 3.2, 3.9, 3.44, None, None)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What `bench` is called with; it measures nothing."""
    calls: list[Any] = []

    def fake(*given: Any) -> list[Measurement]:
        calls.append(given[:3])
        return [OURS, PEER]

    monkeypatch.setattr(bench_run, "bench", fake)
    return calls


@pytest.mark.parametrize(("units", "precisions"), [((), ("fp32",)), (("amx_bf16",), ("fp32", "bf16"))])
def test_by_default_supported_precisions_are_measured(
    units: tuple[str, ...], precisions: tuple[Precision, ...], asked: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "bf16_units", lambda: units)
    assert CliRunner().invoke(verbs, ["train"]).exit_code == 0
    ((names, sides, setting),) = asked
    assert names == [
        "full-128",
        "pairs-128",
        "half-512",
        "base-128",
        "modern-128",
        "modern-1024",
        "phrases-128",
    ] and sides == ("bertwright",)
    assert setting == Setting(precisions, Training(threads=2, dropout=None, attention_dropout=0.0), 3, 5)


@pytest.mark.parametrize("precision", ["fp32", "bf16"])
def test_one_precision_is_measured_whatever_the_processor_has(
    precision: str, asked: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "bf16_units", lambda: ("amx_bf16",) if precision == "fp32" else ())
    assert CliRunner().invoke(verbs, ["train", "--precision", precision]).exit_code == 0
    assert asked[0][2].precisions == (precision,)


def test_options_reach_the_measurement(asked: list[Any]) -> None:
    pytest.importorskip("accelerate", reason="the extra 'bench' is not installed")
    options = ["--workload", "half-512", "--workload", "full-128", "--peer", "hf", "--precision", "both"]
    more = ["--dropout", "0.2", "--attention-dropout", "0.1", "--threads", "1", "--rounds", "4", "--steps", "6"]
    assert CliRunner().invoke(verbs, ["train", *options, *more]).exit_code == 0
    ((names, sides, setting),) = asked
    assert names == ["full-128", "half-512"] and sides == ("bertwright", "trainer", "trainer-tuned")
    assert setting == Setting(("fp32", "bf16"), Training(threads=1, dropout=0.2, attention_dropout=0.1), 4, 6)


def test_the_table_has_ratios_ranges_floor_and_processor_seconds(asked: list[Any]) -> None:
    head, *rows = CliRunner().invoke(verbs, ["train"]).stdout.splitlines()[-3:]
    assert [word for word in head.split("  ") if word.strip()]
    for name in ("s/step", "CPU s", "speed-up", "worst", "best", "CPU speed-up", "floor", "to fp32"):
        assert name in head
    assert rows[0].split() == ["full-128", "bertwright", "bf16", "0.500", "0.400", "0.700", "0.900"] + [
        word for number in ("1.00", "1.00", "1.00", "1.00", "1.31", "1.85") for word in (number, "×")
    ]
    assert rows[1].split()[-2:] == ["–", "–"] and "3.40 ×" in rows[1] and "3.20 ×" in rows[1] and "3.90 ×" in rows[1]


def test_json_has_every_number(asked: list[Any]) -> None:
    rows = json.loads(CliRunner().invoke(verbs, ["train", "--json"]).stdout)
    assert rows[0]["floor_ratio"] == 1.31 and rows[0]["times_fp32"] == 1.85 and rows[1]["floor_ratio"] is None
    assert rows[1]["times_lowest"] == 3.2 and rows[1]["processor_seconds"] == 3.1


def test_a_peer_that_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch, asked: list[Any]) -> None:
    monkeypatch.setattr(verb, "find_spec", lambda name: None if name == "accelerate" else object())
    result = CliRunner().invoke(verbs, ["train", "--peer", "hf"])
    assert "--peer hf needs transformers and accelerate: pip install 'bertwright[bench]'" in str(result.exception)
    assert not asked


@pytest.mark.parametrize(
    "option", [["--dropout", "1"], ["--attention-dropout", "-0.1"], ["--precision", "fp16"], ["--steps", "0"]]
)
def test_values_that_mean_nothing_are_refused(option: list[str], asked: list[Any]) -> None:
    assert CliRunner().invoke(verbs, ["train", *option]).exit_code == 2 and not asked


def test_the_verb_measures_ours_alone_and_refuses_what_there_is_not() -> None:
    options = ["--workload", "full-128", "--rounds", "1", "--steps", "1", "--threads", "1", "--json"]
    options += ["--precision", "fp32"]  # one row, also where the processor has units for bfloat16
    (row,) = json.loads(bertwright("bench", "train", *options).out)
    assert row["side"] == "bertwright" and row["times_as_fast"] == 1 and row["times_fp32"] is None
    assert row["floor_ratio"] > 0 and row["seconds"] > 0 and row["processor_seconds"] > 0
    refused = bertwright("bench", "train", "--workload", "fool-128")
    assert refused.code == 2 and "use one of full-128, pairs-128, half-512, base-128, modern-128" in refused.err


@pytest.mark.slow
def test_the_verb_measures_all_sides_in_turn() -> None:
    options = ["--workload", "pairs-128", "--rounds", "1", "--steps", "1", "--threads", "1", "--peer", "hf", "--json"]
    options += ["--precision", "fp32"]
    rows = json.loads(bertwright("bench", "train", *options, "--attention-dropout", "0.1").out)
    assert [row["side"] for row in rows] == ["bertwright", "trainer", "trainer-tuned"]
    assert all(row["seconds"] > 0 and row["processor_seconds"] > 0 for row in rows)
    assert rows[0]["times_as_fast"] == 1
