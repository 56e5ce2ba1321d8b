"""The stage `examples`: corpus and vocabulary in, token store and plans out, and data made elsewhere brought in.

A task is one corpus shard: read, tokenise, part into training and held-out documents, plan every set and pass. Its
arrays go into `.parts`, ended by a JSON file; a finished shard is not done again after an interruption. When all
are there they are joined into the files of the artifact; `.parts` goes once the artifact is published.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from bertwright.core.artifact import Artifact, Identity, build
from bertwright.core.config import what
from bertwright.core.done import read_done
from bertwright.core.errors import DataError
from bertwright.core.files import make_folder, write_json
from bertwright.core.libraries import libraries
from bertwright.core.log import SILENT, Log
from bertwright.core.ranks import WHOLE, Share
from bertwright.core.tasks import Executor, Pool
from bertwright.corpus.text import shard_names
from bertwright.examples.config import ExamplesConfig, ForeignData, PlanSet
from bertwright.examples.foreign import Chosen, Import, import_file, import_tasks
from bertwright.examples.foreign_files import content, find
from bertwright.examples.foreign_join import join_foreign
from bertwright.examples.heldout import hold_one_out
from bertwright.examples.join import join
from bertwright.examples.leak import heldout_contamination
from bertwright.examples.shard import ShardTask, of_one_shard, prepare_shard, tokenizer_of
from bertwright.examples.store import Vocabulary

VERSION = 5
FEW_HELDOUT = 20
"""Held-out documents below which the user is told that scores will be rough."""


def run(
    config: ExamplesConfig,
    sets: tuple[PlanSet, ...],
    corpus: Artifact,
    vocab: Artifact,
    out: Path,
    log: Log = SILENT,
    executor: Executor | None = None,
    share: Share = WHOLE,
    foreign: Sequence[ForeignData] = (),
) -> Artifact:
    """The examples artifact at `out`: the token store, plans for each of `sets`, and the examples of `foreign`.

    Shards are prepared by `executor` (default: processes on this machine). Raises `OthersToFinish` when `share` is not
    the whole and another process completes the stage.
    """
    sets = _distinct(sets)
    chosen = [(data, find(data)) for data in foreign]
    inputs = {"corpus": corpus.fingerprint, "vocab": vocab.fingerprint}
    inputs |= {data.input: content(found) for data, found in chosen}
    ours = identity(config, sets, inputs, foreign)
    with executor or Pool(config.workers) as pool:
        return build(out, ours, log, lambda draft: _make(config, sets, corpus, vocab, draft, log, pool, share, chosen))


def identity(
    config: ExamplesConfig, sets: tuple[PlanSet, ...], inputs: Mapping[str, str], foreign: Sequence[ForeignData] = ()
) -> Identity:
    """What the examples are a function of; `inputs` has the fingerprints of "corpus" and "vocab", and the `content` of
    each of `foreign`.
    """
    settings = {"examples": what(config), "train": {"phases": [what(plan_set) for plan_set in _distinct(sets)]}}
    settings |= {data.key: {"length": data.length, "quarantine": data.quarantine} for data in foreign}
    return Identity(
        "examples", VERSION, settings, {name: inputs[name] for name in ("corpus", "vocab", *(d.input for d in foreign))}
    )


def _distinct(sets: tuple[PlanSet, ...]) -> tuple[PlanSet, ...]:
    return tuple(dict.fromkeys(sets))


def _make(
    config: ExamplesConfig,
    sets: tuple[PlanSet, ...],
    corpus: Artifact,
    vocab: Artifact,
    draft: Path,
    log: Log,
    executor: Executor,
    share: Share,
    foreign: Chosen,
) -> dict[str, Any]:
    names = shard_names(corpus)
    used = libraries(draft, ("tokenizers",), log)
    parts = make_folder(draft / ".parts")
    vocabulary = _vocabulary(vocab)
    write_json(draft / "vocabulary.json", vocabulary)
    shared = (vocab, parts, config, sets, vocabulary["size"])
    tasks = [ShardTask(name, number, of_one_shard(corpus, name), *shared) for number, name in enumerate(names)]
    imports = import_tasks(foreign, parts, vocab, Vocabulary(**vocabulary), config)
    _work_through(tasks, imports, executor, share, log)
    outputs = [*(task.facts for task in imports), *(task.facts for task in tasks)]
    share.complete("examples", draft, outputs)
    if taken := hold_one_out(tasks):
        log.say(f"examples: {taken}")
    facts = [read_done(task.facts) for task in tasks]
    counts = join(draft, parts, facts, sets, config, vocabulary["size"])
    _check(counts)
    entries = tokenizer_of(vocab).vocabulary
    counts |= join_foreign(draft, foreign, imports, config, entries, log)
    heldout, documents = counts["heldout"]["documents"], counts["documents"]
    log.say(f"examples: {counts['train']['tokens']:,} tokens, {heldout:,} of {documents:,} documents held out")
    if heldout < FEW_HELDOUT:
        log.say(f"examples: scores on {heldout} held-out documents will be rough; a larger examples.heldout helps")
    leaked = heldout_contamination(draft / "store", entries)
    return {
        "vocabulary": vocabulary["hash"],
        "shards": len(names),
        **counts,
        "heldout_contamination": leaked,
        "libraries": used,
    }


def _work_through(tasks: list[ShardTask], imports: list[Import], executor: Executor, share: Share, log: Log) -> None:
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


def _vocabulary(vocab: Artifact) -> dict[str, Any]:
    tokenizer = tokenizer_of(vocab)
    entries = tokenizer.vocabulary
    ids = {name: tokenizer.ids(f"[{name.upper()}]") for name in ("pad", "unk", "cls", "sep", "mask")}
    unused = [i for i, entry in enumerate(entries) if entry.startswith("[unused")]
    continues = np.flatnonzero(tokenizer.continuation).tolist()
    return {"hash": vocab.counts["vocabulary"], "size": len(entries), **ids, "unused": unused, "continues": continues}


def _check(counts: dict[str, Any]) -> None:
    empty = [name for name, rows in counts["train"]["rows"].items() if not min(rows)]
    if not counts["train"]["documents"] or empty:
        raise DataError(
            f"no training examples for {', '.join(empty) or 'any set'}: {counts['documents']:,} documents in all. "
            "Use a larger corpus, a smaller examples.heldout, or a wider documents range."
        )
