"""What a process does of the tasks of the stage `examples`, and what all of them know of the vocabulary."""

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
    """This process's share of the tasks of all steps, one step after the other."""
    own = [(run, [task for number, task in enumerate(tasks) if share.owns(number)]) for run, tasks in steps]
    done = 0

    def report(_: None) -> None:
        nonlocal done
        done += 1
        log.progress("examples", done, sum(len(tasks) for _, tasks in own), "shards")

    for run, tasks in own:
        executor.map(run, tasks, "examples", report)


def vocabulary_facts(vocab: Artifact) -> dict[str, Any]:
    """What `vocabulary.json` of the examples says of a vocabulary: the fields of `store.Vocabulary`."""
    # Written down, because drawing batches must not load a tokenizer (decision 0002).
    tokenizer = tokenizer_of(vocab)
    entries = tokenizer.vocabulary
    ids = {name: tokenizer.ids(f"[{name.upper()}]") for name in ("pad", "unk", "cls", "sep", "mask")}
    unused = [i for i, entry in enumerate(entries) if entry.startswith("[unused")]
    continues = np.flatnonzero(tokenizer.continuation).tolist()
    return {"hash": vocab.counts["vocabulary"], "size": len(entries), **ids, "unused": unused, "continues": continues}
