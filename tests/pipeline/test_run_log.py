"""The log that a run keeps in its folder."""

import json
from pathlib import Path

import pytest

from bertwright.core.errors import RecipeError
from bertwright.core.log import SILENT
from bertwright.pipeline.run_log import FILE, write_log


def lines(folder: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in (folder / FILE).read_text(encoding="utf-8").splitlines()]


def test_sentences_and_the_error_that_ends_a_run_are_kept_without_secrets(tmp_path: Path) -> None:
    token = "hf_" + "a1" * 15
    with pytest.raises(RecipeError), write_log(SILENT, tmp_path) as log:
        log.say(f"árvíztűrő {token}")
        raise RecipeError("there is no such key")
    first, last = lines(tmp_path)
    assert str(first["message"]).startswith("árvíztűrő") and token not in str(first["message"])
    assert last["message"] == "there is no such key" and last["error"] is True
    assert str(first["time"]).endswith("Z")


def test_a_killed_run_loses_half_a_line_and_no_other(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text('{"time": "2026-01-01T00:00:00Z", "mess')
    with write_log(SILENT, tmp_path) as log:
        log.say("begins again")
    torn, whole = (tmp_path / FILE).read_text().splitlines()
    assert torn.endswith("mess") and json.loads(whole)["message"] == "begins again"


def test_a_log_that_cannot_be_written_loses_sentences_only(tmp_path: Path) -> None:
    (tmp_path / FILE).mkdir()
    with write_log(SILENT, tmp_path) as log:
        log.say("nothing happens")
