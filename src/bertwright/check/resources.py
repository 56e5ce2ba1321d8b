"""Whether the machine has the memory and the disk that a run takes; checked without torch.

Memory of training: `train/sizes.py`, and a teacher as `check.teacher` says; of other stages 0.25 GB a worker, and
0.7 GB.

Disk, measured on three dumps: a corpus takes 1.15 times its text (result and scratch), a token is 5 bytes of text;
examples take 2.1 bytes a token and 16 bytes a plan of each pass, and as much again while they are made. A checkpoint
has 12 bytes a parameter; `train.keep_checkpoints`, the best one, one a phase and one being written are there at a time.
The model and its export have 4 bytes a parameter each. Both rules are right within a factor of two.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from bertwright.check.device import training_gpus
from bertwright.check.machine import disk_free
from bertwright.check.verdict import Verdict, error, ok, warning
from bertwright.core.distributed import ranks_here
from bertwright.core.errors import DataError
from bertwright.core.memory import memory_size
from bertwright.core.processor import default_workers
from bertwright.objectives.config import DistillationConfig
from bertwright.recipe import Recipe
from bertwright.train.sizes import averaged_copies, computing_of, training_bytes

BYTES_A_TOKEN = 5
"""Bytes of text that a token has about, with a vocabulary of usual size."""
DOUBT = 2
"""By how much the rules may be wrong: beyond it a run is refused, within it a warning is given."""
_WORKER_BYTES, _STAGE_BYTES = 0.25e9, 0.7e9
_FREE_SPACE = "Free space there, or choose another folder (--out DIR)."


def memory(recipe: Recipe, stages: Sequence[str], ranks: int = 1) -> Iterator[Verdict]:
    """Whether the stages fit in memory."""
    available = memory_size()
    for stage, section in (("corpus", recipe.corpus), ("examples", recipe.examples)):
        # Labelled texts are read by one process.
        if stage in stages and section is not None and not (stage == "examples" and recipe.labels):
            workers = section.workers or default_workers()
            remedy = f"Use fewer workers ({stage}.workers=1)."
            yield _memory_verdict(
                f"{stage}.workers", f"{workers} workers", _STAGE_BYTES + workers * _WORKER_BYTES, available, remedy
            )
    if "train" in stages:
        yield _training_memory(recipe, ranks, available)


def _training_memory(recipe: Recipe, ranks: int, available: int) -> Verdict:
    """Whether a rank's training fits on its GPU, or in its part of the `available` bytes of this machine."""
    gpus = training_gpus(recipe)
    here = 1 if gpus else ranks_here()  # a GPU is one rank's; the machine's memory is that of all who train on it
    # Of AMD's GPUs the memory cannot be read without torch; 0 stands for "unknown".
    place = (gpus[0] or None) if gpus else available / here
    bert = recipe.network()
    computing, phases = computing_of(recipe.train, recipe.optim, ranks, gpu=bool(gpus)), recipe.train.phases
    needs = [training_bytes(bert, phase, computing) for phase in phases]
    if isinstance(recipe.train.objective, DistillationConfig):
        from bertwright.check.teacher import teacher_bytes  # reads the folders of other programs

        needs = [need + teacher_bytes(recipe, bert, phase, ranks) for need, phase in zip(needs, phases, strict=True)]
    # Phases run one after another, so the largest of them decides.
    number = needs.index(max(needs))
    what = f"training {bert.parameters:,} parameters, in phase {number},"
    what += f" on each of the {here} ranks of this machine," if here > 1 else ""
    return _memory_verdict("train memory", what, needs[number], place, _less_memory(recipe, number, here))


def _less_memory(recipe: Recipe, number: int, here: int) -> str:
    """What would make phase `number` take less, on a machine with so many ranks."""
    phase, ways = recipe.train.phases[number], list[str]()
    if phase.micro_batch != "auto":  # which is lowered by itself
        ways.append(f"lower train.phases.{number}.{'micro_tokens' if phase.micro_tokens else 'micro_batch'}")
    if not recipe.train.checkpoint_activations:
        ways.append("set train.checkpoint_activations=true")
    ways.append("choose a smaller model.size")
    if here > 1:
        ways.append("start fewer ranks on this machine")
    remedy = ", or ".join(filter(None, (", ".join(ways[:-1]), ways[-1])))
    return f"{remedy[0].upper()}{remedy[1:]}."


def _memory_verdict(about: str, what: str, needed: float, available: float | None, remedy: str) -> Verdict:
    text = f"{what} take about {needed / 1e9:.1f} GB of memory"
    if available is None:
        return ok(about, text)
    text += f", {available / 1e9:.1f} GB are there"
    if needed > DOUBT * available:
        return error(about, f"{text}.", remedy, DataError)
    return warning(about, f"{text}.", remedy) if needed > available else ok(about, text)


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
    described = f"about {_shown(total)} are written ({shares}){unknown}; {_shown(free)} are free"
    if total > DOUBT * free:
        yield error("disk", f"{described}.", _FREE_SPACE, DataError)
    elif total > free:
        yield warning("disk", f"{described}.", _FREE_SPACE)
    else:
        yield ok("disk", described)


def run_bytes(recipe: Recipe, text: float | None) -> dict[str, float]:
    """Bytes that each stage has on disk at most, about; of the sources only where their text is known."""
    parameters, train = recipe.network().parameters, recipe.train
    sizes: dict[str, float] = {}
    if text is not None:
        sizes = {"corpus": 1.15 * text, "examples": 2 * examples_bytes(recipe, text)}
    # The best one and the one that is being written stand beside those that are kept.
    checkpoints = train.keep_checkpoints + 2 + len(train.phases)
    size = checkpoint_bytes(recipe) * checkpoints + 4 * parameters
    return {**sizes, "train": size, "export": 4.0 * parameters}


def examples_bytes(recipe: Recipe, text: float) -> float:
    """Bytes of the finished examples of so many bytes of text, about."""
    tokens = text / BYTES_A_TOKEN
    plans = sum(tokens / plan.length for plan in recipe.plan_sets()) * recipe.examples.passes
    return 2.1 * tokens + 16 * plans


def checkpoint_bytes(recipe: Recipe) -> float:
    """Bytes of a checkpoint, beside the heads of its files."""
    return (12.0 + 4 * averaged_copies(recipe.train.averaging)) * recipe.network().parameters


def _shown(size: float) -> str:
    return f"{size / 1e9:,.1f} GB" if size >= 1e8 else f"{size / 1e6:,.1f} MB"
