"""Check whether the run folder may be used: a run never renames or overwrites files that are not its own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from bertwright.check.verdict import Verdict, error, ok, raised
from bertwright.core.artifact import MANIFEST
from bertwright.core.errors import DataError, RecipeError
from bertwright.core.files import refuse_address
from bertwright.core.lock import LOCK
from bertwright.core.stage_context import STAGE_NAMES

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
        yield raised("--out", cause)
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
