"""Everything that can be checked about a run before it starts, without torch and without the network."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from bertwright.check.machine.computing import computing, device, instructions, precision
from bertwright.check.machine.resources import disk, memory
from bertwright.check.recipe.advice import advice, repeated
from bertwright.check.recipe.data import examples_of_another_run, given_vocabulary, imported_data, sources
from bertwright.check.recipe.information import information
from bertwright.check.recipe.packages import packages
from bertwright.check.run_folder import run_folder
from bertwright.check.verdict import Verdict, error, ok, raised
from bertwright.core.artifact import MANIFEST
from bertwright.core.errors import RecipeError
from bertwright.estimate.known_data import NOTHING_KNOWN, known_before
from bertwright.estimate.machine_facts import OtherMachine
from bertwright.model.config import without_peer
from bertwright.recipe import Recipe


def check_recipe(
    recipe: Recipe, out: Path, stages: Sequence[str], ranks: int = 1, at: OtherMachine | None = None
) -> list[Verdict]:
    """Return verdicts on running `stages` of the recipe in the run folder `out` with `ranks` training processes, here
    or `at` another machine, of which no packages, disks and run folders are known.

    Requirements of finished stages are not checked again, apart from the sources, which every run reads.
    """
    return list(_verdicts(recipe, out, stages, ranks, at))


def _verdicts(
    recipe: Recipe, out: Path, stages: Sequence[str], ranks: int, at: OtherMachine | None
) -> Iterator[Verdict]:
    # A run continued on another machine does not need what only its finished stages needed.
    pending = [stage for stage in stages if not (out / stage / MANIFEST).is_file()]
    if at is None:
        yield from run_folder(out)
        yield from packages(recipe, pending)
    else:
        yield _of_place(recipe, at)
    if "export" in pending and (missing := without_peer(recipe.network())):
        yield error("model.kind", missing, "Choose one of these, or stop before the export: --until evaluate.")
    size = None
    # Every run checks its sources, finished or not: they are part of the corpus's identity.
    if "corpus" in stages and recipe.corpus is not None:
        size, of_sources = sources(recipe.corpus, "corpus" in pending)
        yield from of_sources
    entries, of_vocabulary = given_vocabulary(recipe.vocab, pending)
    yield from of_vocabulary
    if "examples" in stages:
        yield from imported_data(recipe, entries, "examples" in pending)
    yield from examples_of_another_run(recipe, out, pending)
    if recipe.train.init_from is not None or recipe.task.taught_by is not None:
        from bertwright.check.recipe.pretrained import pretrained  # reads folders of other programs

        yield from pretrained(recipe, out, pending)
    yield from device(recipe, pending, at)
    yield from precision(recipe, pending, at)
    if at is None:
        yield from instructions(recipe, pending)
    yield from computing(recipe, pending, at)
    data = known_before(recipe, out, size) if "train" in pending else NOTHING_KNOWN
    yield from memory(recipe, pending, ranks, data, at)
    yield from disk(recipe, out, pending, size, at is not None)
    # A source on another machine tells nothing, and then nothing is said of the epochs.
    known = recipe.corpus is not None and (size is not None or (out / "corpus" / MANIFEST).is_file())
    yield from advice(recipe, pending, data if known else None)
    yield from information(recipe, out, pending)
    yield from repeated(recipe, out, pending)


def _of_place(recipe: Recipe, at: OtherMachine) -> Verdict:
    """The verdict on the ranks of a place, and what is not known of it."""
    try:
        # Everything else was checked when the recipe was read.
        recipe.check(ranks=at.ranks, given=False)
    except RecipeError as cause:
        return raised("place", cause)
    ranks = f"{at.ranks} training process{'es' * (at.ranks > 1)}"
    return ok("place", f"{at.title}, {ranks}; its packages, free disk and run folder cannot be checked from here")
