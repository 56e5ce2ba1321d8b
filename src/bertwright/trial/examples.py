"""Examples for trials of a recipe: those of its run, or of a sample of its text, made next to it and removed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bertwright.core.errors import DataError
from bertwright.core.files import make_folder, remove
from bertwright.core.log import Log
from bertwright.recipe import Recipe
from bertwright.trial.child import run_child
from bertwright.trial.rehearsal import PREPARED, link, rehearsal


@dataclass(frozen=True)
class TrialExamples:
    """The examples that trials train on."""

    recipe: Recipe
    """The rehearsed recipe, which replaces the original one."""
    folder: Path
    """A run folder that is finished up to the examples."""

    @contextmanager
    def run_folder(self) -> Iterator[Path]:
        """A new run folder with the same examples, removed at the end of the block."""
        folder = make_folder(self.folder.parent / "trial")
        try:
            link(tuple(name for name in PREPARED if (self.folder / name).exists()), self.folder, folder)
            yield folder
        finally:
            remove(folder)


@contextmanager
def trial_examples(recipe: Recipe, run: Path, log: Log, scratch: Path) -> Iterator[TrialExamples]:
    """The examples of the run folder `run`, or those of a sample of its text, in `scratch`, which is removed
    afterwards.

    `scratch` is also removed at the start, because a killed search leaves its files there. Raises `DataError` if the
    examples cannot be made.
    """
    remove(scratch)
    try:
        planned = rehearsal(recipe, run, make_folder(scratch / "sources"))
        log.say(f"autotune: with {planned.text}")
        data = make_folder(scratch / "data")
        link(planned.made, run, data)
        if "examples" not in planned.made:
            planned.recipe.write(scratch / "data.toml")
            command = ["run", str(scratch / "data.toml"), "--until", "examples", "--out", str(data), "--json"]
            ended = run_child(command, scratch / "data.log")
            if ended.code:
                raise DataError(f"autotune: the examples could not be made: {ended.reason}")
        yield TrialExamples(planned.recipe, data)
    finally:
        remove(scratch)
