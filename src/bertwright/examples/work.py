"""What a process does of the tasks of the stage `examples`, and what all of them know of the vocabulary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from bertwright.core.artifact import Artifact
from bertwright.core.log import Log
from bertwright.core.tasks import Executor
from bertwright.core.work_split import WorkSplit
from bertwright.examples.shard import ShardTask, prepare_shard, tokenizer_of
from bertwright.formats.imported.tasks import Import, import_file


def work_through(
    tasks: Sequence[ShardTask], imports: Sequence[Import], executor: Executor, share: WorkSplit, log: Log
) -> None:
    """This process's share of the tasks; files made elsewhere first, because they may be refused."""
    files = [task for number, task in enumerate(imports) if share.owns(number)]
    shards = [task for task in tasks if share.owns(task.number)]
    done = 0

    def report(_: None) -> None:
        nonlocal done
        done += 1
        log.progress("examples", done, len(files) + len(shards), "shards")

    executor.map(import_file, files, "examples", report)
    executor.map(prepare_shard, shards, "examples", report)


def vocabulary_facts(vocab: Artifact) -> dict[str, Any]:
    """What `vocabulary.json` of the examples says of a vocabulary: the fields of `store.Vocabulary`."""
    tokenizer = tokenizer_of(vocab)
    entries = tokenizer.vocabulary
    ids = {name: tokenizer.ids(f"[{name.upper()}]") for name in ("pad", "unk", "cls", "sep", "mask")}
    unused = [i for i, entry in enumerate(entries) if entry.startswith("[unused")]
    continues = np.flatnonzero(tokenizer.continuation).tolist()
    return {"hash": vocab.counts["vocabulary"], "size": len(entries), **ids, "unused": unused, "continues": continues}
