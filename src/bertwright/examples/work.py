"""Runs a process's share of the tasks of the stage `examples`, and collects the vocabulary facts they all need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bertwright.core.artifact import Artifact
from bertwright.core.log import Log
from bertwright.core.tasks import Executor
from bertwright.core.work_split import WorkSplit
from bertwright.examples.inputs import Step
from bertwright.examples.shard import tokenizer_of


def work_through(steps: Sequence[Step], executor: Executor, share: WorkSplit, log: Log) -> None:
    """Run this process's share of the tasks of all steps, one step after the other."""
    own = [(run, [task for number, task in enumerate(tasks) if share.owns(number)]) for run, tasks in steps]
    done = 0

    def report(_: None) -> None:
        nonlocal done
        done += 1
        log.progress("examples", done, sum(len(tasks) for _, tasks in own), "shards")

    for run, tasks in own:
        executor.map(run, tasks, "examples", report)


def vocabulary_facts(vocab: Artifact) -> dict[str, Any]:
    """The content of `vocabulary.json` for a vocabulary: the fields of `vocabulary.Vocabulary`."""
    # Stored, because loading batches must not require a tokenizer (decision 0002).
    tokenizer = tokenizer_of(vocab)
    entries = tokenizer.vocabulary
    ids = {name: tokenizer.ids(f"[{name.upper()}]") for name in ("pad", "unk", "cls", "sep", "mask")}
    unused = [i for i, entry in enumerate(entries) if entry.startswith("[unused")]
    continues = np.flatnonzero(tokenizer.continuation).tolist()
    return {"hash": vocab.counts["vocabulary"], "size": len(entries), **ids, "unused": unused, "continues": continues}
