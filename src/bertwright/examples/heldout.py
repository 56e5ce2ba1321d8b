"""Ensures that neither split is empty: a small corpus holds out the document that a larger share would select first, or
trains on the one that a smaller share would leave first.

Membership is decided shard by shard, so an empty split is known only once all shards are prepared. Then one shard is
prepared again. A corpus of one document is split: its last tenth is held out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from bertwright.core.errors import DataError
from bertwright.core.files import read_bytes
from bertwright.core.task_records import read_done
from bertwright.examples.documents import heldout_place
from bertwright.examples.shard import ShardTask, prepare_shard
from bertwright.examples.store import SPLITS, Split


def hold_one_out(tasks: Sequence[ShardTask]) -> str:
    """Ensure that both splits have at least one document, given the finished tasks of all shards.

    Returns a message for the user if the requested share put all documents into one split, else "". A run that was
    interrupted here produces the same result and the same message when it resumes.
    """
    facts = [read_done(task.facts) for task in tasks]
    documents = {split: sum(shard[split]["documents"] for shard in facts) for split in SPLITS}
    full = [split for split in SPLITS if documents[split]]
    if len(full) == 1:
        filled = [task for task, shard in zip(tasks, facts, strict=True) if shard[full[0]]["documents"]]
        _move_one(filled, full[0], documents[full[0]])
    return _what_was_moved(tasks)


def _move_one(tasks: Sequence[ShardTask], split: Split, documents: int) -> None:
    """Prepare the shard with the document to move out of `split` again; `tasks` are those of shards with documents,
    all of which are in this split."""
    places = [heldout_place(_hashes(task, split)) for task in tasks]
    # Held-out documents are strictly below the share.
    if split == "train":
        lowest, first = min((float(of_shard.min()), i) for i, of_shard in enumerate(places))
        share = float(np.nextafter(lowest, 1.0))
    else:
        share, first = max((float(of_shard.max()), i) for i, of_shard in enumerate(places))
    task = tasks[first]
    if documents == 1 and read_done(task.facts)[split]["sentences"] < 2:
        raise DataError(
            "the corpus is one document of one sentence, but both text to train on and text to score are needed. Add "
            "text to corpus.source."
        )
    task.facts.unlink()  # before the parts change, so that an interrupted run prepares the shard again
    prepare_shard(replace(task, config=task.config.model_copy(update={"heldout": share}), cut=documents == 1))


def _what_was_moved(tasks: Sequence[ShardTask]) -> str:
    # Read from the files, so that an interrupted run prints the same message when it resumes.
    held, kept = (np.concatenate([_hashes(task, split) for task in tasks]) for split in ("heldout", "train"))
    asked, number = tasks[0].config.heldout, len(held) + len(kept)
    if len(held) == len(kept) == 1 and kept[0] == held[0]:
        return (
            "the corpus is one document: its last tenth is held out, and the rest is used for training; the scores "
            "will not be meaningful"
        )
    # Otherwise the regular rule put the document there, and there is nothing to report.
    if len(held) == 1 and heldout_place(held)[0] >= asked:
        return (
            f"no document of {number:,} fell into the held-out share examples.heldout={asked:g}; one document is "
            "held out anyway"
        )
    if len(kept) == 1 and heldout_place(kept)[0] < asked:
        return (
            f"all {number:,} documents fell into the held-out share examples.heldout={asked:g}; one document is used "
            "for training anyway"
        )
    return ""


def _hashes(task: ShardTask, split: Split) -> NDArray[np.uint64]:
    return np.frombuffer(read_bytes(task.parts / split / f"{task.number:05}.hashes"), "<u8")
