"""What a package needs to write plugins: the base classes of sections, and the interfaces that their objects have.

A plugin is the section of a recipe in another package: a subclass of one of the base classes, whose fields are recipe
keys. A recipe names it by the entry point that its package declares, or as `package:Class`:

| group of entry points | base class | named by |
|---|---|---|
| `bertwright.optimizers` | `OptimizerPlugin` | `optim.kind` |
| `bertwright.schedules` | `SchedulePlugin` | `train.phases.N.schedule.kind` |
| `bertwright.observers` | `ObserverPlugin` | `train.observers.N.kind` |
| `bertwright.tasks` | `TaskPlugin` | `train.objective.kind` |
| `bertwright.sources` | none: a `SourceFormat` object | `corpus.source.N.format` |

Each field has a docstring below it with its meaning and unit. `runtime_only(default)` declares a field that changes how
work is done but not its result, `known_by_content(default)` one that names a file. Nothing here imports torch, and
modules with sections should not either: recipes are checked without it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from bertwright.core.config import Section, known_by_content, runtime_only
from bertwright.optim.config import OptimizerPlugin
from bertwright.optim.schedule import SchedulePlugin
from bertwright.train.monitor.observers.config import ObserverPlugin
from bertwright.train.monitor.observers.observer import Observed, Observer

if TYPE_CHECKING:
    from bertwright.corpus.sources.format import SourceFormat
    from bertwright.tasks.pretraining.task import PreTrainingTask
    from bertwright.tasks.task import Task, TaskPlugin
    from bertwright.tasks.terms import Term

__all__ = [
    "Observed",
    "Observer",
    "ObserverPlugin",
    "OptimizerPlugin",
    "PreTrainingTask",
    "SchedulePlugin",
    "Section",
    "SourceFormat",
    "Task",
    "TaskPlugin",
    "Term",
    "known_by_content",
    "runtime_only",
]


def __getattr__(name: str) -> Any:
    """Import on first use what plugins of other kinds do not need."""
    match name:
        case "SourceFormat":
            from bertwright.corpus.sources.format import SourceFormat

            return SourceFormat
        case "PreTrainingTask":
            from bertwright.tasks.pretraining.task import PreTrainingTask

            return PreTrainingTask
        case "Task" | "TaskPlugin":
            from bertwright.tasks import task

            return getattr(task, name)
        case "Term":
            from bertwright.tasks.terms import Term

            return Term
    raise AttributeError(f"module 'bertwright.plugins' has no attribute {name!r}")
