"""`bench autotune` on the command line: trials that train, one that runs out of memory, a search that resumes."""

import json
import tomllib
from pathlib import Path

import pytest
from tests.pipeline.conftest import Call

from bertwright.trial import attempt as trial


@pytest.mark.slow
def test_a_search_is_kept_and_goes_on_and_its_best_is_written(tmp_path: Path, call: Call) -> None:
    out, file = tmp_path / "runs" / "mine", tmp_path / "fast.toml"
    command = ("bench", "autotune", "smoke", "--steps", "1", "--out", out, "--json", "--micro-batch", "16")
    first = json.loads(call(*command).out)
    assert [row["outcome"] for row in first["trials"]] == ["trained", "trained"]
    assert all(row["passes"] == 2 and row["seconds"] > 0 and row["memory_bytes"] > 10**8 for row in first["trials"])
    assert {path.name for path in (tmp_path / "runs" / "mine.autotune").iterdir()} >= {"phase-0.json"}
    # Completed trials are not repeated: the times are the same.
    again = json.loads(call(*command, "--micro-batch", "32", "--write", file).out)
    assert again["trials"][0] == first["trials"][0] and len(again["trials"]) == 4
    written = tomllib.loads(file.read_text(encoding="utf-8"))
    assert written["train"]["phases"][0]["micro_batch"] == again["best"]["train.phases.0.micro_batch"]
    assert "train.engine" not in again["best"] and "engine" not in written["train"]
    assert call("check", file).code == 0


@pytest.mark.slow
def test_ranks_try_the_engines_of_several(tmp_path: Path, call: Call) -> None:
    command = (
        "bench",
        "autotune",
        "smoke",
        "--steps",
        "1",
        "--out",
        tmp_path / "mine",
        "--json",
        "--micro-batch",
        "16",
    )
    made = json.loads(call(*command, "--ranks", "2", "--engine", "zero", "--engine", "fsdp").out)
    found = [(row["candidate"]["engine"], row["outcome"]) for row in made["trials"]]
    assert found == [(engine, "trained") for engine in ("zero", "zero", "fsdp", "fsdp")]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("engine", "words"),
    [('{kind="zero", reduction="bf16"}', ()), ('{kind="ddp", reduction="bf16"}', ("--ranks", "2", "--engine", "ddp"))],
)
def test_the_recipes_engine_is_tried_and_written_with_its_settings(
    engine: str, words: tuple[str, ...], tmp_path: Path, call: Call
) -> None:
    file = tmp_path / "fast.toml"
    key = f"train.engine={engine}"
    command = ("bench", "autotune", "smoke", key, "--steps", "1", "--out", tmp_path / "mine", "--micro-batch", "16")
    done = call(*command, "--write", file, *words)
    assert done.code == 0 and "changed: train.phases.0.micro_batch from 0 to 16" in done.out, done.err
    assert "train.engine" not in done.out
    written = tomllib.loads(file.read_text(encoding="utf-8"))
    assert written["train"]["engine"] == tomllib.loads(f"engine={engine}")["engine"]


@pytest.mark.slow
def test_a_trial_without_memory_or_time_costs_only_itself(
    tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ("bench", "autotune", "smoke", "--steps", "1", "--out", tmp_path / "mine", "--micro-batch", "1")
    monkeypatch.setattr(trial, "memory_size", lambda: 60 * 2**20)
    done = call(*command)
    assert done.code == 3 and "out-of-memory" in done.out and "no configuration could be trained" in done.err
    monkeypatch.undo()
    (tmp_path / "mine.autotune" / "phase-0.json").unlink()
    done = call(*command, "--limit", "1")
    assert done.code == 3 and "too-slow: not finished after 1 s" in done.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--phase", "3"), "the recipe has phases 0 to 1"),
        (("--engine", "zero"), "there are auto"),
        (("--micro-batch", "1000"), "a rank has 32 sequences per step"),
        (("train.phases.0.packing=true",), "packing decides how many sequences"),
    ],
)
def test_what_cannot_be_tried_is_told(words: tuple[str, ...], said: str, call: Call, tmp_path: Path) -> None:
    done = call("bench", "autotune", "smoke", "--out", tmp_path / "mine", *words)
    assert done.code == 2 and said in done.err
