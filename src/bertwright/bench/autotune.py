"""Autotuning: train a recipe in every configuration that may be the fastest here, and keep the results in a table."""

from __future__ import annotations

import platform
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from bertwright._version import __version__
from bertwright.bench.search import Candidate, Sizes, Trial, search
from bertwright.bench.table import Table
from bertwright.bench.trial import Tried, attempt
from bertwright.check import device
from bertwright.check.machine import gpu_names, torch_build
from bertwright.core.log import Log
from bertwright.recipe import Recipe


class Examples(Protocol):
    """The examples that trials train on."""

    @property
    def recipe(self) -> Recipe:
        """The recipe to try on these examples."""

    def run_folder(self) -> AbstractContextManager[Path]:
        """A run folder with the examples, valid inside the `with` block."""


Prepare = Callable[[Path], AbstractContextManager[Examples]]
"""Makes examples in the given folder, which exists inside the `with` block."""


def autotune(
    tried: Tried, engines: Sequence[str], sizes: Sizes, table: Table, prepare: Prepare, log: Log
) -> list[Trial]:
    """The trials in search order, each taken from the table or run now and stored there."""
    with ExitStack() as stack:

        @cache  # at most once, and only if something is left to try
        def prepared() -> Examples:
            return stack.enter_context(prepare(table.folder / "scratch"))

        def attempted(candidate: Candidate) -> Trial:
            if kept := table.trials.get(candidate):
                return kept
            examples = prepared()
            log.say(f"autotune: {_words(candidate)}")
            with examples.run_folder() as folder:
                return table.keep(attempt(replace(tried, recipe=examples.recipe), candidate, folder))

        return list(search([(name, again) for name in engines for again in (False, True)], sizes, attempted))


def machine_here(tried: Tried) -> dict[str, Any]:
    """Properties of the machine and its programs for which trials may differ."""
    gpus = list(gpu_names()) if device.training_gpus(tried.recipe) else []
    names = {"machine": platform.node(), "cpu": platform.machine(), "gpus": gpus}
    return {**names, "torch": torch_build().version, "bertwright": __version__}


def _words(candidate: Candidate) -> str:
    again = ", activations checkpointed" if candidate.checkpoint_activations else ""
    return f"{candidate.engine}, micro-batch {candidate.micro_batch}{again}"
