"""Ensures a non-empty held-out set: a small corpus holds out the document that a larger share would select first.

Membership is decided shard by shard, so an empty held-out set is known only once all shards are prepared. Then one
shard is prepared again. A corpus of one document is split: its last tenth is held out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bertwright.core.done import read_done
from bertwright.core.errors import DataError
from bertwright.core.files import read_bytes
from bertwright.examples.documents import heldout_place
from bertwright.examples.shard import ShardTask, prepare_shard
from bertwright.examples.store import SPLITS, Split


def hold_one_out(tasks: Sequence[ShardTask]) -> str:
    """Ensure that at least one document is held out, given the finished tasks of all shards.

    Returns a message for the user if the requested share selected no document, else "". A run that was interrupted
    here produces the same result and the same message when it resumes.
    """
    facts = [read_done(task.facts) for task in tasks]
    documents = {split: sum(shard[split]["documents"] for shard in facts) for split in SPLITS}
    if documents["train"] and not documents["heldout"]:
        filled = [task for task, shard in zip(tasks, facts, strict=True) if shard["train"]["documents"]]
        _take_one(filled, documents["train"])
    return _what_was_taken(tasks)


def _take_one(tasks: Sequence[ShardTask], documents: int) -> None:
    """Prepare the shard with the document to hold out again; `tasks` are those of shards with training documents."""
    lowest, first = min((float(heldout_place(_hashes(task, "train")).min()), i) for i, task in enumerate(tasks))
    task = tasks[first]
    if documents == 1 and read_done(task.facts)["train"]["sentences"] < 2:
        raise DataError(
            "the corpus is one document of one sentence, but both text to train on and text to score are needed. Add "
            "text to corpus.source."
        )
    share = np.nextafter(lowest, 1.0)  # held-out documents are strictly below the share
    task.facts.unlink()  # before the parts change, so that an interrupted run prepares the shard again
    prepare_shard(replace(task, config=task.config.model_copy(update={"heldout": share}), cut=documents == 1))


def _what_was_taken(tasks: Sequence[ShardTask]) -> str:
    # Read from the files, so that an interrupted run prints the same message when it resumes.
    held = np.concatenate([_hashes(task, "heldout") for task in tasks])
    asked = tasks[0].config.heldout
    # Below the requested share, the regular rule held it out: there is nothing to report.
    if len(held) != 1 or heldout_place(held)[0] < asked:
        return ""
    kept = np.concatenate([_hashes(task, "train") for task in tasks])
    if len(kept) == 1 and kept[0] == held[0]:
        return (
            "the corpus is one document: its last tenth is held out, and the rest is used for training; the scores "
            "will not be meaningful"
        )
    return (
        f"no document of {len(kept) + 1:,} fell into the held-out share examples.heldout={asked:g}; one document is "
        "held out anyway"
    )


def _hashes(task: ShardTask, split: Split) -> NDArray[np.uint64]:
    return np.frombuffer(read_bytes(task.parts / split / f"{task.number:05}.hashes"), "<u8")
