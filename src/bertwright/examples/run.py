"""The stage `examples`: corpus and vocabulary in, token store and plans out, and data made elsewhere brought in.

Without a corpus data made elsewhere is all there is (`formats.imported`).

A task is one corpus shard: read, tokenise, part into training and held-out documents, plan every set and pass. Its
arrays go into `.parts`, ended by a JSON file; a finished shard is not done again after an interruption. When all
are there they are joined into the files of the artifact; `.parts` goes once the artifact is published.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bertwright.core.artifact import Artifact, build
from bertwright.core.config import Identity
from bertwright.core.done import read_done
from bertwright.core.errors import DataError
from bertwright.core.files import make_folder, write_json
from bertwright.core.libraries import libraries
from bertwright.core.log import Log
from bertwright.core.stage_context import StageContext
from bertwright.core.tasks import Executor, Pool
from bertwright.core.work_split import SINGLE, WorkSplit
from bertwright.corpus.text import shard_names
from bertwright.examples.config import VERSION, ExamplesConfig, ImportedData, PlanSet, distinct, sections
from bertwright.examples.heldout import hold_one_out
from bertwright.examples.heldout_overlap import heldout_contamination
from bertwright.examples.join import join
from bertwright.examples.shard import ShardTask, of_one_shard, tokenizer_of
from bertwright.examples.store import Vocabulary
from bertwright.examples.work import vocabulary_facts, work_through
from bertwright.formats.imported.join import join_imported
from bertwright.formats.imported.phase_files import find, find_tests, known_by
from bertwright.formats.imported.tasks import Chosen, import_tasks
from bertwright.formats.imported.without_corpus import Stage, make_without_corpus

FEW_HELDOUT = 20
"""Held-out documents below which the user is told that scores will be rough."""


def run(
    config: ExamplesConfig,
    sets: tuple[PlanSet, ...],
    corpus: Artifact | None,
    vocab: Artifact,
    context: StageContext,
    imported: Sequence[ImportedData] = (),
) -> Artifact:
    """The examples artifact in `context.out`: token store, plans for each of `sets`, and the examples of `imported`.

    Without `corpus` it holds the examples of `imported` alone, of which some are held out.

    Shards are prepared by `context.executor`. Raises `StageIncomplete` when `context.share` is not the whole and
    another process completes the stage.
    """
    log, share = context.log, context.share or SINGLE
    sets = distinct(sets)
    chosen = [(data, find(data)) for data in imported]
    tests = {} if corpus else {data.phase: find_tests(data, found) for data, found in chosen}
    inputs = {"vocab": vocab.fingerprint} | ({"corpus": corpus.fingerprint} if corpus else {})
    for data, found in chosen:
        inputs |= known_by(data, found, tests.get(data.phase, ()))
    ours = identity(config, sets, inputs, imported)

    def make(draft: Path, pool: Executor) -> dict[str, Any]:
        if corpus:
            return _make(config, sets, corpus, vocab, draft, log, pool, share, chosen)
        return make_without_corpus(Stage(config, vocab, chosen, tests, inputs), draft, log, pool, share)

    with context.executor or Pool(config.workers) as pool:
        return build(context.out, ours, log, lambda draft: make(draft, pool))


def identity(
    config: ExamplesConfig, sets: tuple[PlanSet, ...], inputs: Mapping[str, str], imported: Sequence[ImportedData] = ()
) -> Identity:
    """What the examples are a function of; `inputs` has the fingerprints of "corpus" (where there is one) and "vocab",
    and what the files of each of `imported` are `known_by`.
    """
    needed = [*(("corpus",) if "corpus" in inputs else ()), "vocab", *(data.input for data in imported)]
    needed += [data.test_input for data in imported if data.test_input in inputs]
    return Identity("examples", VERSION, sections(config, sets, imported), {name: inputs[name] for name in needed})


def _make(
    config: ExamplesConfig,
    sets: tuple[PlanSet, ...],
    corpus: Artifact,
    vocab: Artifact,
    draft: Path,
    log: Log,
    executor: Executor,
    share: WorkSplit,
    imported: Chosen,
) -> dict[str, Any]:
    names = shard_names(corpus)
    used = libraries(draft, ("tokenizers",), log)
    parts = make_folder(draft / ".parts")
    vocabulary = vocabulary_facts(vocab)
    write_json(draft / "vocabulary.json", vocabulary)
    shared = (vocab, parts, config, sets, vocabulary["size"])
    tasks = [ShardTask(name, number, of_one_shard(corpus, name), *shared) for number, name in enumerate(names)]
    imports = import_tasks(imported, parts, vocab, Vocabulary(**vocabulary), config)
    work_through(tasks, imports, executor, share, log)
    outputs = [*(task.facts for task in imports), *(task.facts for task in tasks)]
    share.complete("examples", draft, outputs)
    if taken := hold_one_out(tasks):
        log.say(f"examples: {taken}")
    facts = [read_done(task.facts) for task in tasks]
    counts = join(draft, parts, facts, sets, config, vocabulary["size"])
    _check(counts)
    entries = tokenizer_of(vocab).vocabulary
    counts |= join_imported(draft, imported, imports, config, entries, log)
    heldout, documents = counts["heldout"]["documents"], counts["documents"]
    log.say(f"examples: {counts['train']['tokens']:,} tokens, {heldout:,} of {documents:,} documents held out")
    if heldout < FEW_HELDOUT:
        more = "a larger examples.heldout helps" if documents >= 4 * FEW_HELDOUT else "only more text helps"
        log.say(f"examples: scores on {heldout} held-out documents will be rough; {more}")
    overlap = heldout_contamination(draft / "store", entries)
    return {
        "vocabulary": vocabulary["hash"],
        "shards": len(names),
        **counts,
        "heldout_contamination": overlap,
        "libraries": used,
    }


def _check(counts: dict[str, Any]) -> None:
    empty = [name for name, rows in counts["train"]["rows"].items() if not min(rows)]
    if not counts["train"]["documents"] or empty:
        raise DataError(
            f"no training examples for {', '.join(empty) or 'any set'}: {counts['documents']:,} documents in all. "
            "Use a larger corpus, a smaller examples.heldout, or a wider document_range."
        )
