"""Everything that can be checked about a run and its folder before it starts, without torch and without the network."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from bertwright.check.machine.computing import computing, device, instructions, precision
from bertwright.check.machine.resources import disk, memory
from bertwright.check.recipe.advice import advice, repeated_reading
from bertwright.check.recipe.data import (
    examples_of_another_run,
    general_texts,
    given_vocabulary,
    imported_data,
    letter_case,
    sources,
)
from bertwright.check.recipe.information import information
from bertwright.check.recipe.packages import packages
from bertwright.check.verdict import Verdict, error, from_exception, ok
from bertwright.core.artifact import MANIFEST
from bertwright.core.errors import DataError, RecipeError
from bertwright.core.files import refuse_address
from bertwright.core.stage_context import STAGE_NAMES
from bertwright.core.work_split import LOCK
from bertwright.estimate.known_data import NOTHING_KNOWN, known_before
from bertwright.estimate.machine_facts import OtherMachine
from bertwright.export.config import unwritable
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
    if "export" in pending:
        for name in recipe.export.formats:
            if why := unwritable(name, recipe.network()):
                yield error("export.formats", f"export.formats has {name}: {why}.", "Leave it out.")
    size = None
    # Every run checks its sources, finished or not: they are part of the corpus's identity.
    if "corpus" in stages and recipe.corpus is not None:
        size, of_sources = sources(recipe.corpus, "corpus" in pending)
        yield from of_sources
    if "evaluate" in pending and (general := recipe.general_texts()):
        yield from general_texts(general)
    if "vocab" in pending and recipe.corpus is not None:
        yield from letter_case(recipe.vocab, recipe.corpus)
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
    # The size of a source on another machine is unknown, and so are the epochs.
    known = recipe.corpus is not None and (size is not None or (out / "corpus" / MANIFEST).is_file())
    yield from advice(recipe, pending, data if known else None)
    yield from information(recipe, out, pending)
    yield from repeated_reading(recipe, out, pending)


def _of_place(recipe: Recipe, at: OtherMachine) -> Verdict:
    """The verdict on the ranks of a place, and what is not known of it."""
    try:
        # Everything else was checked when the recipe was read.
        recipe.check(ranks=at.ranks, given=False)
    except RecipeError as cause:
        return from_exception("place", cause)
    ranks = f"{at.ranks} training process{'es' * (at.ranks > 1)}"
    return ok("place", f"{at.title}, {ranks}; its packages, free disk and run folder cannot be checked from here")


_TRAINING = ("checkpoints", "metrics.jsonl")
"""Files in `train` before the stage is finished."""
_BEFORE_A_RUN = ["launch"]
"""What `launch --submit` creates there."""
_OTHER = "Choose another folder (--out DIR): a new or empty one, or that of a run."


def run_folder(out: Path) -> Iterator[Verdict]:
    """Yield a verdict on whether a run may create, or resume in, the folder `out`."""
    try:
        refuse_address(out)
    except RecipeError as cause:
        yield from_exception("--out", cause)
        return
    # A run creates its folder and the missing parents, so the nearest existing one must be writable.
    above = next(path for path in (out, *out.absolute().parents) if path.exists())
    if not above.is_dir() or not os.access(above, os.W_OK | os.X_OK):
        reason = "cannot be written to" if above.is_dir() else "is a file"
        what = f"cannot write {out}: {above if above != out else 'it'} {reason}."
        yield error("--out", what, "Choose a folder you may write to (--out DIR).", DataError)
        return
    yield _content(out)


def _content(out: Path) -> Verdict:
    # Ignore hidden files: .DS_Store and the like also appear in empty folders.
    names = sorted(path.name for path in out.iterdir() if not path.name.startswith(".")) if out.is_dir() else []
    if not names or names == _BEFORE_A_RUN:
        return ok("--out", f"{out} is {'empty' if out.is_dir() else 'new'}")
    finished = [stage for stage in STAGE_NAMES if (out / stage / MANIFEST).is_file()]
    # The lock exists from the first second of a run, before any stage is finished.
    if not finished and not (out / LOCK).is_file():
        held = ", ".join(names[:4]) + (f" and {len(names) - 4:,} more" if len(names) > 4 else "")
        return error("--out", f"{out} is not a run folder and contains {held}.", _OTHER)
    if foreign := next((stage for stage in STAGE_NAMES if _is_foreign(out / stage)), None):
        what = f"{out / foreign} was not made by this program: it has no {MANIFEST}."
        return error(
            "--out", what, f"Move it away, or choose another folder (--out DIR): a run keeps its {foreign} there."
        )
    return ok("--out", f"{out} is a run folder; finished: {', '.join(finished) or 'nothing yet'}")


def _is_foreign(stage: Path) -> bool:
    """Whether the folder of a stage contains something that no run created."""
    if not stage.exists() or (stage / MANIFEST).is_file():
        return False
    if not stage.is_dir():
        return True
    names = {path.name for path in stage.iterdir()}
    # Other stages are built in a draft next to their folder; only training works in its own (decision 0001).
    return bool(names) and not (stage.name == "train" and any(name in names for name in _TRAINING))
