"""Check without torch whether the machine has the memory and the disk space that a run needs.

The memory of training and the disk space are those of `estimate/`; other stages take 0.7 GB and 0.25 GB a worker.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from bertwright.check.verdict import Verdict, error, ok, warning
from bertwright.core.distributed import ranks_here
from bertwright.core.errors import DataError
from bertwright.core.numbers import size_of
from bertwright.core.resources import address_space, default_workers, memory_size
from bertwright.estimate.disk import run_bytes
from bertwright.estimate.known_data import NOTHING_KNOWN, Data
from bertwright.estimate.machine_facts import OtherMachine, disk_free, training_gpus, trains_on_gpu
from bertwright.estimate.memory import memory_of
from bertwright.estimate.work import works_of
from bertwright.recipe import Recipe
from bertwright.train.memory.rank_memory import (
    PROGRAM_BYTES,
    computing_of,
    over_limit,
)

DOUBT = 2
"""Factor by which the estimates may be wrong: beyond it a run is rejected, within it a warning is issued."""
_WORKER_BYTES, _STAGE_BYTES = 0.25e9, 0.7e9
_ADDRESSES = {"train": 1.75e9, "evaluate": 1.75e9, "export": 2.3e9}
"""Bytes of address space that a stage takes with torch and, for the export, transformers, besides threads and model."""
_THREAD_ADDRESSES = 0.15e9
"""Bytes of address space that each thread of torch takes: its stack and its heap."""
_ADDRESSES_DOUBT = 1.1
"""The same as `DOUBT` for address space, which is measured: below it libraries end the process with words of their own,
or none."""
_FREE_SPACE = "Free space there, or choose another folder (--out DIR)."


def memory(
    recipe: Recipe,
    stages: Sequence[str],
    ranks: int = 1,
    data: Data = NOTHING_KNOWN,
    at: OtherMachine | None = None,
) -> Iterator[Verdict]:
    """Yield verdicts on whether the stages fit in memory, here or `at` another machine; `data`: what is known about
    the examples of the phases. The memory of training is that of the plan."""
    # A place with GPUs says how much memory these have, not the machine.
    available = memory_size() if at is None else None if at.gpu else at.memory * at.each
    for stage, section in (("corpus", recipe.corpus), ("examples", recipe.examples)):
        # One process reads labelled texts.
        if stage in stages and section is not None and not (stage == "examples" and recipe.task.files):
            workers = section.workers or (default_workers() if at is None else at.cores)
            remedy = f"Use fewer workers ({stage}.workers=1)."
            yield _memory_verdict(
                f"{stage}.workers", f"{workers} workers", _STAGE_BYTES + workers * _WORKER_BYTES, available, remedy
            )
    needs, room = list[float](), _room(recipe, at)
    if "train" in stages:
        works = works_of(recipe, data, ranks, room.gpu, room.size or 0.0)
        needs = [memory_of(recipe, work, ranks, room.gpu).total for work in works]
    if at is None and (limit := address_space()):
        yield from _addresses(recipe, stages, 0.0 if room.gpu else max(needs, default=0.0), limit)
    if needs:
        yield from _training_memory(recipe, ranks, needs, room)


def _addresses(recipe: Recipe, stages: Sequence[str], training: float, limit: float) -> Iterator[Verdict]:
    """Yield the verdict on a limit of the address space for the stages that load torch; `training`: the bytes that
    training takes in it, with those of torch."""
    threads, model = default_workers(), 4.0 * recipe.network().parameters
    beside = {"train": max(0.0, training - PROGRAM_BYTES), "evaluate": model, "export": 2 * model}
    if needs := [size + beside[stage] for stage, size in _ADDRESSES.items() if stage in stages]:
        # Where a thread gets no stack, libraries end the process without a word.
        yield _memory_verdict(
            "ulimit -v",
            f"torch and its {threads} threads",
            max(needs) + threads * _THREAD_ADDRESSES,
            limit,
            "Raise the limit of this shell or job (ulimit -v unlimited): it counts addresses, also those not in use.",
            "address space",
        )


class _Room(NamedTuple):
    """Where a rank trains."""

    gpu: bool
    sharing: int
    """Ranks that share the memory of one machine; a GPU has one rank."""
    size: float | None
    """Bytes of memory that the rank may use; None if unknown."""
    machine: str = "this machine"


def _room(recipe: Recipe, at: OtherMachine | None) -> _Room:
    if at is not None:
        gpu = trains_on_gpu(recipe, at)
        # A recipe for the CPU of a machine with GPUs: a place says nothing of its memory.
        return _Room(gpu, 1 if at.gpu else at.each, at.memory or None if gpu == at.gpu else None, "each machine")
    gpus = training_gpus(recipe)
    if gpus:  # the memory of AMD GPUs cannot be read without torch; 0 stands for "unknown"
        return _Room(True, 1, gpus[0] or None)
    return _Room(False, ranks_here(), memory_size() / ranks_here())


def _training_memory(recipe: Recipe, ranks: int, needs: Sequence[float], room: _Room) -> Iterator[Verdict]:
    """Yield verdicts on whether a rank fits on its GPU, or in its share of its machine's memory, and into the recipe's
    limit; `needs`: the bytes that each phase takes."""
    here, bert = room.sharing, recipe.network()
    # Phases run one after another, so the largest one decides.
    number = needs.index(max(needs))
    what = f"training {bert.parameters:,} parameters, in phase {number},"
    what += f" on each of the {here} ranks of {room.machine}," if here > 1 else ""
    yield _memory_verdict("train memory", what, needs[number], room.size, _less_memory(recipe, number, here))
    computing = computing_of(recipe.train, recipe.optim, ranks, gpu=room.gpu)
    for over in over_limit(recipe.train, bert, computing):
        yield Verdict(
            "error" if over.times > DOUBT else "warning", "train.memory_limit_gb", over.text, over.remedy, DataError
        )


def _less_memory(recipe: Recipe, number: int, here: int) -> str:
    """Return what would reduce the memory of phase `number`, on a machine with `here` ranks."""
    phase, ways = recipe.train.phases[number], list[str]()
    if phase.micro_batch != "auto":  # auto is lowered automatically
        ways.append(f"lower train.phases.{number}.{'micro_tokens' if phase.micro_tokens else 'micro_batch'}")
    if not recipe.train.checkpoint_activations:
        ways.append("set train.checkpoint_activations=true")
    ways.append("choose a smaller model.size")
    if here > 1:
        ways.append("start fewer ranks on this machine")
    remedy = ", or ".join(filter(None, (", ".join(ways[:-1]), ways[-1])))
    return f"{remedy[0].upper()}{remedy[1:]}."


def _memory_verdict(
    about: str,
    what: str,
    needed: float,
    available: float | None,
    remedy: str,
    noun: Literal["memory", "address space"] = "memory",
) -> Verdict:
    text = f"{what} take about {size_of(needed)} of {noun}"
    if available is None:
        return ok(about, text)
    text += f", {size_of(available)} are available"
    if needed > (DOUBT if noun == "memory" else _ADDRESSES_DOUBT) * available:
        return error(about, f"{text}.", remedy, DataError)
    return warning(about, f"{text}.", remedy) if needed > available else ok(about, text)


def disk(
    recipe: Recipe, out: Path, stages: Sequence[str], text: float | None, elsewhere: bool = False
) -> Iterator[Verdict]:
    """Yield the verdict on whether the stages' output fits on disk; `text` is the sources' bytes of text, or None.
    Of the disk of a machine `elsewhere` nothing is known."""
    parts = run_bytes(recipe, text)
    needed = {stage: size for stage, size in parts.items() if stage in stages}
    if not needed:
        return
    total = sum(needed.values())
    unknown = (
        ""
        if text is not None or not {"corpus", "examples"} & set(stages)
        else ", without what is made from the sources"
    )
    shares = ", ".join(f"{stage} {size_of(size)}" for stage, size in needed.items())
    described = f"about {size_of(total)} will be written ({shares}){unknown}"
    if elsewhere:
        yield ok("disk", described)
        return
    free = disk_free(out)
    described += f"; {size_of(free)} are free"
    if total > DOUBT * free:
        yield error("disk", f"{described}.", _FREE_SPACE, DataError)
    elif total > free:
        yield warning("disk", f"{described}.", _FREE_SPACE)
    else:
        yield ok("disk", described)
