"""How much disk a run takes, by rules right within a factor of two, and whether there is as much.

Measured on three dumps: a corpus takes 1.15 times its text (result and scratch), a token is 5 bytes of text; examples
take 2.1 bytes a token and 16 bytes a plan of each pass, and as much again while they are made. A checkpoint has 12
bytes a parameter; `train.keep_checkpoints`, the best one, one a phase and one being written are there at a time. The
model and its export have 4 bytes a parameter each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from bertwright.check.machine import disk_free
from bertwright.check.memory import DOUBT
from bertwright.check.verdict import Verdict, error, ok, warning
from bertwright.core.errors import DataError
from bertwright.recipe import Recipe

_REMEDY = "Free space there, or choose another folder (--out DIR)."


def disk(recipe: Recipe, out: Path, stages: Sequence[str], text: float | None) -> Iterator[Verdict]:
    """Whether what the stages write has room; `text` is the bytes of text of the sources, None where not known."""
    parts = run_bytes(recipe, text)
    needed = {stage: size for stage, size in parts.items() if stage in stages}
    if not needed:
        return
    total, free = sum(needed.values()), disk_free(out)
    unknown = (
        "" if text is not None or not {"corpus", "examples"} & set(stages) else ", beside what is made of the sources"
    )
    shares = ", ".join(f"{stage} {_shown(size)}" for stage, size in needed.items())
    found = f"about {_shown(total)} are written ({shares}){unknown}; {_shown(free)} are free"
    if total > DOUBT * free:
        yield error("disk", f"{found}.", _REMEDY, DataError)
    elif total > free:
        yield warning("disk", f"{found}.", _REMEDY)
    else:
        yield ok("disk", found)


def run_bytes(recipe: Recipe, text: float | None) -> dict[str, float]:
    """Bytes that each stage writes, about; those of the sources are left out where their text is not known."""
    parameters, train = recipe.network().parameters, recipe.train
    found: dict[str, float] = {}
    if text is not None:
        tokens = text / 5
        plans = sum(tokens / plan.length for plan in recipe.plan_sets()) * recipe.examples.passes
        found = {"corpus": 1.15 * text, "examples": 2 * (2.1 * tokens + 16 * plans)}
    checkpoints = train.keep_checkpoints + 2 + len(train.phases)
    return {**found, "train": (12.0 * checkpoints + 4) * parameters, "export": 4.0 * parameters}


def _shown(size: float) -> str:
    return f"{size / 1e9:,.1f} GB" if size >= 1e8 else f"{size / 1e6:,.1f} MB"
