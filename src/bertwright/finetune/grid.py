"""Runs a drafted recipe at each point of a grid of settings, with several seeds, and compares the points.

OUT/<point>/seed-1, ...    the run folders; a point is named by its values, such as learning_rate-2e-5_batch-16
OUT/scores.json            the scores of all points
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import TypedDict

from bertwright.core.errors import RecipeError
from bertwright.core.files import write_json
from bertwright.core.log import SILENT, Log
from bertwright.core.overrides import override_key
from bertwright.finetune.draft import Draft
from bertwright.finetune.seeds import SCORES, Results, run_seeds, seeds_of
from bertwright.finetune.tasks import Key, usual_grid

USUAL = "usual"
"""The name of the grid that papers search."""
_PHASE = "train.phases.0."
_COMMA = re.compile(r",(?![^\[]*\])")
"""A comma that is not inside a list."""
Grid = Mapping[str, Key]
"""The values of each key, as texts in TOML, and who searches them."""


class Point(TypedDict):
    """The scores at one point."""

    values: dict[str, str]
    """The value of each key."""
    folder: str
    results: Results


class GridResults(TypedDict):
    """The scores of a task at all points, and the number of the point with the highest mean."""

    task: str
    metric: str
    points: list[Point]
    best: int


def read_grid(words: Sequence[str], draft: Draft, overrides: Sequence[str]) -> Grid:
    """The grid of `--grid KEY=VALUE,VALUE` or `--grid usual`, each of `words` one such text. A key without a dot is one
    of the phase.

    Raises `RecipeError` if a text is neither, or if a key has a value in another of them or in `overrides`.
    """
    grid, given = dict[str, Key](), {override_key(each) for each in overrides}
    for word in words:
        key, equals, values = word.partition("=")
        if word == USUAL:
            some = usual_grid(draft.task, draft.hidden_size)
        elif equals and key and values:
            some = {key: Key(tuple(dict.fromkeys(each.strip() for each in _COMMA.split(values))))}
        else:
            raise RecipeError(
                f"--grid {word} is no grid. Write KEY=VALUE,VALUE, such as --grid learning_rate=2e-5,3e-5, or --grid "
                f"{USUAL} for the one of the papers."
            )
        for name, found in some.items():
            dotted = override_key(name if "." in name else f"{_PHASE}{name}")
            if dotted in grid or dotted in given:
                raise RecipeError(f"--grid {word}: {dotted} is given twice. Leave one of the two out.")
            grid[dotted] = found
    return grid


def points_of(grid: Grid) -> list[dict[str, str]]:
    """The values of the keys at each point of a grid, the last key changing fastest."""
    return [dict(zip(grid, values, strict=True)) for values in product(*(values.value for values in grid.values()))]


def draft_at(draft: Draft, point: Mapping[str, str]) -> Draft:
    """The draft with the values of a point; raises `RecipeError` if it is no valid recipe."""
    changed = draft.changed([f"{key}={value}" for key, value in point.items()])
    changed.recipe()
    return changed


def run_grid(draft: Draft, grid: Grid, out: Path, seeds: int = 1, log: Log = SILENT) -> GridResults:
    """Run the draft at each point in `out`, with the seeds 1 to `seeds` if these are several, and write and return the
    scores.

    What is finished is not run again. Raises `RecipeError` before the first run if a point is no valid recipe, and
    whatever `finetune.seeds.finetune` raises.
    """
    points, numbers = points_of(grid), seeds_of(draft, seeds)
    drafts = [draft_at(draft, point) for point in points]
    log.say(f"finetune: a grid of {len(points):,} points, {len(points) * len(numbers):,} runs")
    found, earlier = list[Point](), list[Path]()
    for number, (point, changed) in enumerate(zip(points, drafts, strict=True), 1):
        folder = out / folder_name(point)
        log.say(f"finetune: point {number:,} of {len(points):,}: {shown(point)}")
        results = run_seeds(changed, {seed: folder / f"seed-{seed}" for seed in numbers}, earlier, log)
        found.append(Point(values=point, folder=str(folder), results=results))
    metric = found[0]["results"]["metric"]
    means = [each["results"]["scores"][metric]["mean"] for each in found]
    all_points = GridResults(task=draft.task.name, metric=metric, points=found, best=means.index(max(means)))
    write_json(out / SCORES, all_points)
    return all_points


def short(key: str) -> str:
    """The last part of a dotted key."""
    return key.rpartition(".")[2]


def shown(point: Mapping[str, str]) -> str:
    """A point in words."""
    return ", ".join(f"{short(key)} {value}" for key, value in point.items())


def folder_name(point: Mapping[str, str]) -> str:
    """The name of the folder of a point."""
    return "_".join(re.sub(r"[^\w.+-]+", "-", f"{short(key)}-{value}") for key, value in point.items())
