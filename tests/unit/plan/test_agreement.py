"""`check` and `plan` give one answer: the memory of training, for every recipe that comes with the package."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.rows import each_row
from typer.testing import CliRunner

from bertwright.cli.app import app
from bertwright.core.numbers import size_of
from bertwright.shipped import titles

pytestmark = pytest.mark.heavy

PLACES = {name: ("--place", name) for name in titles("place")} | {"here": ()}


def facts(*words: str) -> dict[str, Any]:
    """What a verb prints with --json; {} if it refuses the recipe."""
    result = CliRunner().invoke(app, [*words, "--json"])
    return json.loads(result.output) if result.output else {}


@each_row("name", titles("recipe"))
def test_check_and_plan_agree_on_the_memory_of_training(name: str, tmp_path: Path) -> None:
    compared = 0
    for where, place in PLACES.items():
        for keys in ((), ("train.phases.0.micro_batch=auto",)):
            words = (name, *keys, "--out", str(tmp_path / "run"), *place)
            checked, planned = facts("check", *words), facts("plan", *words)
            if "memory_bytes" not in planned:
                continue
            (said,) = [each["text"] for each in checked["verdicts"] if each["about"] == "train memory"]
            assert f" take about {size_of(planned['memory_bytes'])} of memory" in said, (where, keys, said)
            compared += 1
    assert compared >= 4, "a recipe for processors has fewer places"
