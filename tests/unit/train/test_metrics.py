"""Metrics: appended, cut on resume, and refused where they are damaged."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from tests.rows import each_row

from bertwright.core.errors import ArtifactError
from bertwright.train.monitor.metrics import Metrics, saved_before


def row(step: int, saved: bool = False) -> dict[str, object]:
    return {"total_steps": step, "saved": saved, "mlm_loss": 1.0 / step}


def written(path: Path) -> list[int]:
    return [json.loads(line)["total_steps"] for line in path.read_text().splitlines()]


def test_rows_are_there_as_soon_as_they_are_written(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    with Metrics(path, 0) as metrics:
        metrics.write(row(1))
        assert written(path) == [1]
        metrics.write(row(2))
        assert written(path) == [1, 2]


def test_rows_beyond_the_checkpoint_and_a_torn_one_are_cut(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    with Metrics(path, 0) as metrics:
        for step in (1, 2, 3, 4):
            metrics.write(row(step))
    with path.open("a") as handle:
        handle.write('{"total_steps": 5, "sav')
    with Metrics(path, 2) as metrics:
        metrics.write(row(3))
    assert written(path) == [1, 2, 3]


def test_kept_rows_are_synced_before_the_file_is_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, done = tmp_path / "metrics.jsonl", list[str]()
    with Metrics(path, 0) as metrics:
        metrics.write(row(1))

    def noted(name: str, original: Any) -> None:
        monkeypatch.setattr(os, name, lambda *arguments: (done.append(name), original(*arguments)))

    noted("fsync", os.fsync)
    noted("replace", os.replace)
    leftover = tmp_path / ".metrics.jsonl.0123abcd.tmp"  # of a start that was killed just then
    leftover.touch()
    with Metrics(path, 1):
        assert done == ["fsync", "replace"], "a power cut would leave an empty file"
    assert written(path) == [1] and [*tmp_path.iterdir()] == [path]


def test_rows_after_one_written_with_a_checkpoint_tell_of_it(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    with Metrics(path, 0) as metrics:
        metrics.write(row(1))
        metrics.write(row(2, saved=True))
    assert not saved_before(path), "the row is written before the checkpoint, which may have been lost with the power"
    with Metrics(path, 2) as metrics:
        metrics.write(row(3))
    assert saved_before(path)
    assert not saved_before(tmp_path / "absent.jsonl")


@each_row("damaged", [b"not json\n", b'{"saved": true}\n', b"[1]\n"])
def test_a_damaged_row_is_named(tmp_path: Path, damaged: bytes) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(json.dumps(row(1)).encode() + b"\n" + damaged)
    with pytest.raises(ArtifactError, match=r"metrics\.jsonl:2 is damaged.*Remove that line"):
        Metrics(path, 1)
