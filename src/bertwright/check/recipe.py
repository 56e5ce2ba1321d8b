"""Everything that can be checked about a run before it starts, without torch and without the network."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from bertwright.check.advice import advice
from bertwright.check.computing import computing
from bertwright.check.data import examples_of_another_run, imported_data, sources
from bertwright.check.device import device, instructions, precision
from bertwright.check.environment import packages
from bertwright.check.lengths import known_lengths
from bertwright.check.out import run_folder
from bertwright.check.repeated import repeated
from bertwright.check.resources import disk, memory
from bertwright.check.verdict import Verdict, error
from bertwright.check.vocabulary import given_vocabulary
from bertwright.core.artifact import MANIFEST
from bertwright.model.config import without_peer
from bertwright.objectives.config import DistillationConfig
from bertwright.recipe import Recipe


def check_recipe(recipe: Recipe, out: Path, stages: Sequence[str], ranks: int = 1) -> list[Verdict]:
    """Return verdicts on running `stages` of the recipe in the run folder `out` with `ranks` training processes.

    Requirements of finished stages are not checked again, apart from the sources, which every run reads.
    """
    return list(_verdicts(recipe, out, stages, ranks))


def _verdicts(recipe: Recipe, out: Path, stages: Sequence[str], ranks: int) -> Iterator[Verdict]:
    # A run continued on another machine does not need what only its finished stages needed.
    pending = [stage for stage in stages if not (out / stage / MANIFEST).is_file()]
    yield from run_folder(out)
    yield from packages(recipe, pending)
    if "export" in pending and (missing := without_peer(recipe.network())):
        yield error("model.kind", missing, "Choose one of these, or stop before the export: --until evaluate.")
    size = None
    # Every run checks its sources, finished or not: they are part of the corpus's identity.
    if "corpus" in stages and recipe.corpus is not None:
        size, of_sources = sources(recipe.corpus)
        yield from of_sources
    entries, of_vocabulary = given_vocabulary(recipe.vocab, pending)
    yield from of_vocabulary
    if "examples" in stages:
        yield from imported_data(recipe, entries)
    yield from examples_of_another_run(recipe, out, pending)
    if isinstance(recipe.train.objective, DistillationConfig):
        from bertwright.check.teacher import teacher  # reads folders of other programs

        yield from teacher(recipe, out, pending)
    yield from device(recipe, pending)
    yield from precision(recipe, pending)
    yield from instructions(recipe, pending)
    yield from computing(recipe, pending)
    yield from memory(recipe, pending, ranks, known_lengths(recipe, out) if "train" in pending else {})
    yield from disk(recipe, out, pending, size)
    yield from advice(recipe, pending, size)
    yield from repeated(recipe, out, pending)
