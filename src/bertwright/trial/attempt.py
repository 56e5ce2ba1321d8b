"""One autotuning trial: a real training of a few steps, in a separate process whose failure does no harm."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from bertwright.core.child_process import run_child
from bertwright.core.errors import RecipeError
from bertwright.core.resources import memory_size
from bertwright.estimate.expected_choices import as_expected
from bertwright.estimate.known_data import NOTHING_KNOWN
from bertwright.estimate.machine import this_machine
from bertwright.recipe import Recipe
from bertwright.train.averaging.config import within_few_steps
from bertwright.train.monitor.metrics import read_rows
from bertwright.train.settings.phase_config import ONE_PASS
from bertwright.trial.search import Candidate, Trial, step_seconds

_BUDGETS = ("epochs", "samples", "tokens", "hours", "end_after", "target_accuracy")
_NO_MEMORY = ("no memory left", "out of memory")


@dataclass(frozen=True)
class Tried:
    """What is being tuned; the same for all candidates."""

    recipe: Recipe
    phase: int
    """Index of the phase."""
    ranks: int
    steps: int
    """Steps that are timed, with one forward pass and with two each; one more before them warms up."""
    limit: float
    """Time limit of a trial, in seconds."""

    @property
    def share(self) -> int:
        """Sequences per rank in each step."""
        return -(-self.recipe.train.phases[self.phase].batch // self.ranks)

    def recipe_for(self, candidate: Candidate) -> Recipe:
        """The recipe of a trial: the tuned phase gets some steps of one forward pass and then of two; every other phase
        gets one step with a single sequence per rank. Raises `RecipeError` if the recipe does not allow the
        candidate."""
        # In so few steps `auto` would measure nothing.
        given = as_expected(self.recipe, NOTHING_KNOWN, this_machine(self.recipe, self.ranks))
        values = given.to_json(exclude_none=True)
        train = values["train"]
        for number, phase in enumerate(train["phases"]):
            if number == self.phase:
                phase |= self._timed_phase(candidate)
            else:
                # Not left out, because the index of a phase decides the order of its examples; only made short.
                phase |= {"batch": self.ranks, "steps": 1, "warmup": 0.0, **ONE_PASS}
                phase.pop("batch_warmup", None)
            for name in _BUDGETS:
                phase.pop(name, None)
            # So few steps may not reach the others; the highest rate takes the most memory.
            phase["masking"]["rate"] = max(rate for _, rate in self.recipe.train.phases[number].masking.rates)
        if candidate.engine != self.recipe.train.engine.kind:
            train["engine"] = {"kind": candidate.engine}
        train["checkpoint_activations"] = candidate.checkpoint_activations
        # A row of metrics for each step: from these rows the trial is timed.
        train |= {"log_every": 1, "heldout_sequences": 1, "keep_checkpoints": 1, "checkpoint_every": 0, "profile": 0}
        # Without the recipe's limit: what fits is what a trial has to find out.
        train |= {"memory_limit_gb": 0.0, "evaluate_every": 10**6}
        train["averaging"] = within_few_steps(self.recipe.train.averaging)
        # What watches a training that so few steps are not.
        for name in ("observers", "mirror", "spot_notice", "expected", "guard", "compare_ranks_every"):
            train.pop(name, None)
        recipe = Recipe.model_validate(values)
        recipe.check(ranks=self.ranks, given=False)
        return recipe

    def _timed_phase(self, candidate: Candidate) -> dict[str, Any]:
        one, block = candidate.micro_batch * self.ranks, self.steps + 1
        values: dict[str, Any] = {"micro_batch": candidate.micro_batch, "batch": one, "steps": block, "warmup": 0.0}
        if candidate.micro_batch < self.share:
            values |= {"batch": 2 * one, "batch_warmup": [[0, one], [block, 2 * one]], "steps": 2 * block}
        else:
            values["batch_warmup"] = []
        return values


def attempt(tried: Tried, candidate: Candidate, folder: Path) -> Trial:
    """Train a candidate in a run folder that holds its examples, and return the result."""
    try:
        recipe = tried.recipe_for(candidate)
    except RecipeError as error:
        return Trial(candidate, "failed", why=str(error).splitlines()[0])
    recipe.write(folder / "trial.toml")
    log = folder / "trial.log"
    arguments = ["train", str(folder / "trial.toml"), "--out", str(folder)]
    try:
        ended = run_child(arguments, log, tried.ranks, memory=_memory(tried), limit=tried.limit)
    except subprocess.TimeoutExpired:
        return Trial(candidate, "too-slow", why=f"not finished after {tried.limit:g} s")
    code, text = ended.code, ended.log.decode("utf-8", "replace")
    if code == 0:
        return _time(tried, candidate, read_rows(folder / "train" / "metrics.jsonl"))
    # The kernel kills what takes too much memory; a shell in between reports that as 128 + 9.
    if code in (-signal.SIGKILL, 128 + signal.SIGKILL) or any(words in text for words in _NO_MEMORY):
        return Trial(candidate, "out-of-memory", why=f"exit code {code}")
    line_of_error = next((line.strip() for line in reversed(text.splitlines()) if line.startswith("bertwright:")), "")
    return Trial(candidate, "failed", why=line_of_error or f"exit code {code}; see {log.name}")


def _memory(tried: Tried) -> str:
    """The kilobytes of data that each rank of a trial may have."""
    # With GPUs, torch maps far more address space than it uses.
    gpus = tried.recipe.train.device != "cpu" and Path("/dev/nvidiactl").exists()
    return "unlimited" if gpus else str(int(0.9 * memory_size() / tried.ranks) // 1024)


def _time(tried: Tried, candidate: Candidate, rows: Sequence[dict[str, Any]]) -> Trial:
    """The trial's seconds for a step of the full global batch, computed from its rows of metrics."""
    before = [row["seconds"] for row in rows if row.get("phase", 0) < tried.phase and "seconds" in row]
    own = [row for row in rows if row.get("phase") == tried.phase and "seconds" in row]
    took = [b - a for a, b in pairwise([before[-1] if before else 0.0, *(row["seconds"] for row in own)])]
    block = tried.steps + 1
    passes = -(-tried.share // candidate.micro_batch)
    # The first step of each size compiles and fills caches, so it is not counted.
    one = median(took[1:block])
    seconds = step_seconds(one, median(took[block + 1 :]), passes) if passes > 1 else one
    return Trial(candidate, "trained", passes, seconds, max(int(row.get("memory_bytes", 0)) for row in own))
