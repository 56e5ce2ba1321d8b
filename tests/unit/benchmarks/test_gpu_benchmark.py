"""The GPU benchmark, at a size where a processor can: both sides compute the same, are timed, and stand in a table."""

import json
import sys
import threading
import time
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

pytest.importorskip("transformers", reason="the extra 'hf' is not installed")
sys.path.insert(0, str(Path(__file__).parents[3] / "benchmarks"))
import gpu as benchmark
import gpu_worker
from gpu import Found, Pace, main
from gpu_cases import CASES, FIRST, PEER, TINY, Case, Item, Side, items, sides_of
from gpu_measure import Measured, kinds_table, rates_table
from gpu_sides import our_steps
from gpu_worker import Worker, WorkerError, warm

pytestmark = pytest.mark.heavy

ON_CPU = ["--device", "cpu", "--tiny", "--steps", "1"]
EAGER = {"precision": "fp32", "graph": "eager", "device": "cpu"}
GIGABYTE = 1e9


def test_a_case_is_measured_beside_the_peer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main([*ON_CPU, "--profile", "--json", str(tmp_path / "a.json"), "modern-tiny-32-half"])
    printed = capsys.readouterr().out
    assert "modern: same weights, same batch: loss" in printed and "| ms a step |" in printed
    found = json.loads((tmp_path / "a.json").read_text())
    assert [row["side"] for row in found["rows"]] == ["bertwright", PEER, "bertwright, padded"]
    for row in found["rows"]:
        assert row["tokens"] > row["sequences"] > 0 and row["teraflops"] > 0 and row["first_step"] > 0
        assert row["kinds"]["matrix products"] > 0
    assert found["failed"] == {}


def test_one_side_is_measured_alone(tmp_path: Path) -> None:
    main([*ON_CPU, "--side", "padded", "--json", str(tmp_path / "a.json"), "tiny-32-half"])
    (row,) = json.loads((tmp_path / "a.json").read_text())["rows"]
    assert row["side"] == "bertwright, padded" and row["kinds"] == {}


def test_the_first_cases_come_before_the_others() -> None:
    assert [case.name for case in CASES[:FIRST]] == [
        "base-128-full", "large-128-full", "large-512-half", "modern-base-1024-half",
    ]  # fmt: skip
    order = list(items(CASES, gpu=True))
    assert [(item.case, item.side.name) for item in order[: 2 * FIRST]] == [
        (case, side) for case in CASES[:FIRST] for side in ("bertwright", PEER)
    ]
    places = {case: [n for n, item in enumerate(order) if item.case == case] for case in CASES}
    assert max(max(places[case]) for case in CASES[:FIRST]) < min(min(places[case]) for case in CASES[FIRST:])


def test_sides_on_a_gpu() -> None:
    base, modern = ([side.name for side in sides_of(case, gpu=True)] for case in (CASES[0], CASES[3]))
    assert base == [
        "bertwright",
        PEER,
        *(f"bertwright, {it}" for it in ("triton attention", "padded attention", "own kernels", "eager")),
    ]
    assert modern == [
        "bertwright", PEER, "bertwright, varlen attention", "bertwright, padded attention",
        "bertwright, one example a row", "bertwright, eager", "bertwright, eager, without cuDNN",
    ]  # fmt: skip
    for item in items(CASES, gpu=True):
        assert item.side.config(item.case).phases[0].batch == item.case.batch, item
        assert GIGABYTE < item.side.memory(item.case) < 140 * GIGABYTE, item


def test_a_side_without_cudnns_attention_leaves_the_others_theirs() -> None:
    for cudnn in (False, True):
        next(our_steps(TINY[1], Side("any", EAGER, cudnn=cudnn), torch.device("cpu")))
        assert torch.backends.cuda.cudnn_sdp_enabled() is cudnn


def test_an_error_or_a_hang_costs_one_answer() -> None:
    worker = Worker("cpu")
    request = {"do": "warm", "case": "tiny-32-full", "side": "bertwright"}
    with pytest.raises(WorkerError, match="ValueError: no side 'none'"):
        worker.ask({**request, "side": "none"}, 300)
    with pytest.raises(WorkerError, match="no answer after 0 s"):
        worker.ask(request, 0.01)
    assert worker.ask(request, 300) > 0
    worker.close()


def row(case: str, side: str, **more: Any) -> Measured:
    figures = {"sequences": 10, "tokens": 1000, "teraflops": 150.0, "share": 0.2, "gigabytes": 60.0}
    return Measured(case, side, **{**figures, "step_ms": 100.0, "first_step": 7.0, **more})


class Answering:
    """In place of a worker: measures at once."""

    def __init__(self) -> None:
        self.asked = list[str]()

    def ask(self, request: dict[str, Any], limit: float) -> Any:
        self.asked.append(f"{request['case']}, {request['side']}")
        if request["side"] == PEER:
            raise WorkerError("OutOfMemoryError: CUDA out of memory")
        return vars(row(request["case"], request["side"], first_step=2.0, share=0.5))


def test_a_budget_leaves_out_what_would_not_fit(tmp_path: Path) -> None:
    large, small = Case("large", 512, True, 64), Case("tiny", 32, True, 64)
    found, worker = Found({"products": 100.0}), Answering()
    given = Namespace(budget=100.0, steps=5, profile=False, json=tmp_path / "a.json")
    chosen = [Item(case, Side(side)) for case in (small, large, small) for side in ("bertwright", PEER)]
    benchmark._measure_all(chosen, worker, found, given, time.perf_counter())  # type: ignore[arg-type]
    assert worker.asked == ["tiny-32-full, bertwright", f"tiny-32-full, {PEER}"] * 2
    written = json.loads((tmp_path / "a.json").read_text())
    assert len(written["rows"]) == 2 and written["failed"][f"tiny-32-full, {PEER}"].startswith("OutOfMemory")
    assert written["failed"]["large-512-full, bertwright"].startswith("left out: it would take about ")


def test_the_pace_is_that_of_the_slowest_so_far() -> None:
    case, pace = CASES[0], Pace(peak=1000.0)
    guessed = pace.expect(case, 0)
    pace.learn(row("a", "b", first_step=20.0, share=0.5))
    assert pace.expect(case, 0) == 20 < guessed
    assert pace.expect(case, 3) == pytest.approx(20 + 3 * case.operations / 500e12)
    pace.learn(row("a", "c", first_step=10.0, share=0.1))
    assert pace.expect(case, 3) == pytest.approx(20 + 3 * case.operations / 100e12)


@pytest.fixture(name="filling")
def _filling(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """Workers that only count how many of them compile at once."""
    seen: dict[str, Any] = {"now": 0, "most": 0, "began": []}
    lock = threading.Lock()

    class Filling:
        def __init__(self, device: str, environment: dict[str, str]) -> None:
            self.threads = int(environment["TORCHINDUCTOR_COMPILE_THREADS"])

        def ask(self, request: dict[str, Any], limit: float) -> float:
            with lock:
                seen["now"] += 1
                seen["most"] = max(seen["most"], seen["now"])
                seen["began"].append((request["case"], seen["now"], self.threads))
            time.sleep(0.05)
            with lock:
                seen["now"] -= 1
            if request["side"] == PEER:
                raise WorkerError("no compiler")
            return 12.0

        def close(self) -> None:
            pass

    monkeypatch.setattr(gpu_worker, "Worker", Filling)
    yield seen


def fill(gpu: float) -> tuple[dict[str, float], list[str]]:
    said = list[str]()
    chosen = [Item(case, side) for case in CASES[:3] for side in sides_of(case, gpu=True)[:2]]
    return warm(chosen, "cuda", cores=8, host=24 * GIGABYTE, gpu=gpu, limit=60, say=said.append), said


def test_caches_are_filled_at_once_but_for_the_first(filling: dict[str, Any]) -> None:
    found, said = fill(gpu=1000 * GIGABYTE)
    assert filling["began"][0] == ("base-128-full", 1, 8), "all cores for the first"
    assert filling["most"] == 3 and filling["began"][1][2] == 8 // 3, "8 GB of the host for each"
    assert found == {f"{case.name}, bertwright": 12.0 for case in CASES[:3]}
    assert f"caches filled: base-128-full, {PEER}: no compiler" in said


def test_a_small_gpu_is_filled_by_one_process(filling: dict[str, Any]) -> None:
    found, _ = fill(gpu=10 * GIGABYTE)
    assert filling["most"] == 1 and len(found) == 3


def test_the_tables_by_hand() -> None:
    rows = [
        row("a", "bertwright", sequences=20, tokens=2000, teraflops=300.0, share=0.4, kinds={"idle": 1.25}),
        row("a", PEER),
    ]
    assert rates_table(rows, {"a, bertwright": 19.6}).splitlines()[2:] == [
        "| a | bertwright | 20 | 2,000 | 300.0 | 40% | 60.0 | 20 cold, 7 warm | 2.00 |",
        "| a | transformers | 10 | 1,000 | 150.0 | 20% | 60.0 | 7 cold | 1.00 |",
    ]
    assert kinds_table(rows).splitlines() == ["| ms a step | idle |", "|---|---:|", "| a, bertwright | 1.2 |"]


def test_without_a_gpu_it_says_so() -> None:
    with pytest.raises(SystemExit, match="torch sees no GPU here"):
        main([])
