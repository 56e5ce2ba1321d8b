"""The stage `examples`: corpus and vocabulary in, token store and plans out.

A task is one corpus shard: read, tokenise, part into training and held-out documents, plan every set and pass. Its
arrays go into `.parts`, ended by a JSON file; a finished shard is not done again after an interruption. When all
are there they are joined into the files of the artifact; `.parts` goes once the artifact is published.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from bertwright.core.artifact import Artifact, Identity, build
from bertwright.core.config import what
from bertwright.core.errors import DataError
from bertwright.core.files import make_folder, read_json, write_json
from bertwright.core.libraries import libraries
from bertwright.core.log import SILENT, Log
from bertwright.core.ranks import WHOLE, Share
from bertwright.core.tasks import Executor, Pool
from bertwright.corpus.text import shard_names
from bertwright.examples.config import ExamplesConfig, PlanSet
from bertwright.examples.join import join
from bertwright.examples.leak import heldout_contamination
from bertwright.examples.shard import ShardTask, of_one_shard, prepare_shard, tokenizer_of

VERSION = 3
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
) -> Artifact:
    """The examples artifact at `out`: the token store, and plans for each of `sets`.

    Shards are prepared by `executor` (default: processes on this machine). Raises `OthersToFinish` when `share` is not
    the whole and another process completes the stage.
    """
    sets = _distinct(sets)
    found = identity(config, sets, {"corpus": corpus.fingerprint, "vocab": vocab.fingerprint})
    with executor or Pool(config.workers) as pool:
        return build(out, found, log, lambda draft: _make(config, sets, corpus, vocab, draft, log, pool, share))


def identity(config: ExamplesConfig, sets: tuple[PlanSet, ...], inputs: Mapping[str, str]) -> Identity:
    """What the examples are a function of; `inputs` has the fingerprints of "corpus" and "vocab"."""
    settings = {"examples": what(config), "train": {"phases": [what(plan_set) for plan_set in _distinct(sets)]}}
    return Identity("examples", VERSION, settings, {name: inputs[name] for name in ("corpus", "vocab")})


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
) -> dict[str, Any]:
    names = shard_names(corpus)
    used = libraries(draft, ("tokenizers",), log)
    parts = make_folder(draft / ".parts")
    vocabulary = _vocabulary(vocab)
    write_json(draft / "vocabulary.json", vocabulary)
    shared = (vocab, parts, config, sets, vocabulary["size"])
    tasks = [ShardTask(name, number, of_one_shard(corpus, name), *shared) for number, name in enumerate(names)]
    mine = [task for task in tasks if share.owns(task.number)]
    done = 0

    def report(_: None) -> None:
        nonlocal done
        done += 1
        log.progress("examples", done, len(mine), "shards")

    executor.map(prepare_shard, mine, "examples", report)
    share.complete("examples", draft, [task.facts for task in tasks])
    counts = join(draft, parts, [read_json(task.facts) for task in tasks])
    _check(counts, config)
    heldout, documents = counts["heldout"]["documents"], counts["documents"]
    log.say(f"examples: {counts['train']['tokens']:,} tokens, {heldout:,} of {documents:,} documents held out")
    if heldout < FEW_HELDOUT:
        log.say(f"examples: scores on {heldout} held-out documents will be rough; a larger examples.heldout helps")
    leaked = heldout_contamination(draft / "store", tokenizer_of(vocab).vocabulary)
    return {
        "vocabulary": vocabulary["hash"],
        "shards": len(names),
        **counts,
        "heldout_contamination": leaked,
        "libraries": used,
    }


def _vocabulary(vocab: Artifact) -> dict[str, Any]:
    tokenizer = tokenizer_of(vocab)
    entries = tokenizer.vocabulary
    ids = {name: tokenizer.ids(f"[{name.upper()}]") for name in ("pad", "unk", "cls", "sep", "mask")}
    unused = [i for i, entry in enumerate(entries) if entry.startswith("[unused")]
    continues = np.flatnonzero(tokenizer.continuation).tolist()
    return {"hash": vocab.counts["vocabulary"], "size": len(entries), **ids, "unused": unused, "continues": continues}


def _check(counts: dict[str, Any], config: ExamplesConfig) -> None:
    empty = [name for name, rows in counts["train"]["rows"].items() if not min(rows)]
    if not counts["train"]["documents"] or empty:
        raise DataError(
            f"no training examples for {', '.join(empty) or 'any set'}: {counts['documents']:,} documents in all. "
            "Use a larger corpus, a smaller examples.heldout, or a wider documents range."
        )
    if not counts["heldout"]["documents"]:
        raise DataError(
            f"none of {counts['documents']:,} documents fell into the held-out share examples.heldout={config.heldout}."
            f" Raise it (here to {min(0.5, 10 / counts['documents']):.2g} or more)."
        )
