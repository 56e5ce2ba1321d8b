"""What the tests of benchmarks that train share."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from bertwright import Recipe, run
from bertwright.pipeline.stage import STAGES


@pytest.fixture(scope="session")
def in_process() -> Callable[[Path, Sequence[str], Path, str], None]:
    """What `run_recipe` does, without a start of Python for each training."""

    def run_until(recipe: Path, keys: Sequence[str], out: Path, until: str) -> None:
        stages = list(STAGES)
        run(Recipe.load(recipe, keys), out, stages[: stages.index(until) + 1])

    return run_until
