"""The parts of a run folder, which has the same layout at an address."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bertwright.core.artifact import Artifact

CHECKPOINTS = "checkpoints"
"""The folder of a training's checkpoints, inside its own."""
ROWS = "metrics.jsonl"
"""A training's rows of metrics."""
GUESSES = "guesses.jsonl"
"""What the network answered to the same questions at each checkpoint, if the recipe asks some."""
BESIDE = (ROWS, GUESSES)
"""Files with rows of a training; a copied checkpoint has those up to it beside its files."""
RECIPE = "recipe.toml"
REPORT = ("report.html", "summary.json")
PARTS = ("corpus", "vocab", "examples", CHECKPOINTS, "train", "evaluate", "export", "report")
"""In copying order: parts come after the parts they were made from."""
STAGES = tuple(name for name in PARTS if name not in (CHECKPOINTS, "report"))
STEPS = f"train/{CHECKPOINTS}"
"""The place of the checkpoints in the run folder."""


@dataclass(frozen=True)
class Part:
    """An artifact and its place in the run folder."""

    artifact: Artifact
    place: str
    beside: dict[str, bytes] = field(default_factory=dict)
    """Contents of additional files that are copied with it, by name."""

    @property
    def is_checkpoint(self) -> bool:
        """Whether this is a checkpoint of a training."""
        return self.place.startswith(STEPS)

    @property
    def bytes(self) -> int:
        """Total size of the artifact's files."""
        return sum(int(entry["size"]) for entry in self.artifact.manifest["files"].values())


@dataclass(frozen=True)
class RunParts:
    """The finished parts of the run folder `run` that are to be copied."""

    run: Path
    parts: Sequence[Part]
    report: bool
    """Whether the report and the summary are copied too, if the run has them."""
    checkpoints: Callable[[], Sequence[Part]]
    """Finds the checkpoints to copy, the newest last: a running training saves and prunes them meanwhile."""
