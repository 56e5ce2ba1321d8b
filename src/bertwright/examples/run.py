"""The stage `examples`: builds token store and plans from corpus and vocabulary, and imports external data.

External data is imported by `formats.imported.run`, which also makes the examples of a run without a corpus.

A task is one corpus shard: read it, tokenise it, split it into training and held-out documents, and plan every set and
pass. Its arrays go into `.parts`, followed by a JSON file that marks it as finished; finished shards are not repeated
after an interruption. Once all shards are finished they are joined into the files of the artifact; `.parts` is removed
when the artifact is published.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from bertwright.core.artifact import Artifact, build
from bertwright.core.config import Identity
from bertwright.core.errors import DataError
from bertwright.core.files import make_folder, write_json
from bertwright.core.log import Log
from bertwright.core.stage_context import StageContext
from bertwright.core.task_records import read_done, record_libraries
from bertwright.core.tasks import Pool
from bertwright.core.work_split import SINGLE
from bertwright.corpus.text import shard_names, source_names
from bertwright.examples.config import VERSION, ExamplesConfig, ImportedData, PlanSet, distinct, sections
from bertwright.examples.heldout import hold_one_out
from bertwright.examples.heldout_overlap import heldout_contamination
from bertwright.examples.information import of_plans
from bertwright.examples.join import join, join_sources
from bertwright.examples.run_tasks import ImportedSets, Inputs, Step, run_tasks
from bertwright.examples.shard import ShardTask, of_one_shard, prepare_shard, tokenizer_of, vocabulary_facts
from bertwright.examples.vocabulary import Vocabulary

FEW_HELDOUT = 20
"""Number of held-out documents below which the log warns that scores will be rough."""


def run(config: ExamplesConfig, sets: tuple[PlanSet, ...], inputs: Inputs, context: StageContext) -> Artifact:
    """Build the examples artifact of a corpus alone in `context.out`: token store, and plans for each of `sets`.

    Raises as `build_examples` does.
    """
    return build_examples(config, sets, inputs, context, None)


def build_examples(
    config: ExamplesConfig,
    sets: tuple[PlanSet, ...],
    inputs: Inputs,
    context: StageContext,
    external: ImportedSets | None,
) -> Artifact:
    """Build the examples artifact of a corpus in `context.out`, with the `external` data of `inputs.imported`.

    Shards are prepared by `context.executor`. Raises `StageIncomplete` if `context.share` is only a part of the work
    and another process completes the stage.
    """
    sets = distinct(sets)
    known = inputs.fingerprints | (dict(external.inputs) if external else {})
    ours = identity(config, sets, known, inputs.imported)
    with context.executor or Pool(config.workers, context.log) as pool:
        here = replace(context, executor=pool)
        return build(context.out, ours, context.log, lambda draft: _make(config, sets, inputs, external, draft, here))


def identity(
    config: ExamplesConfig, sets: tuple[PlanSet, ...], inputs: Mapping[str, str], imported: Sequence[ImportedData] = ()
) -> Identity:
    """Everything that determines the examples; `inputs` has the fingerprints of "corpus" (if there is one), "vocab",
    and the files of each of `imported` (`formats.imported.phase_files.known_by`).
    """
    needed = [*(("corpus",) if "corpus" in inputs else ()), "vocab", *(data.input for data in imported)]
    needed += [data.test_input for data in imported if data.test_input in inputs]
    return Identity("examples", VERSION, sections(config, sets, imported), {name: inputs[name] for name in needed})


def _make(
    config: ExamplesConfig,
    sets: tuple[PlanSet, ...],
    inputs: Inputs,
    external: ImportedSets | None,
    draft: Path,
    context: StageContext,
) -> dict[str, Any]:
    corpus, vocab, executor = inputs.corpus, inputs.vocab, context.executor
    assert corpus is not None, "examples without a corpus are made by formats.imported.run"
    assert executor is not None
    log, share = context.log, context.share or SINGLE
    names = shard_names(corpus)
    used = record_libraries(draft, ("tokenizers",), log, share.world)
    parts = make_folder(draft / ".parts")
    vocabulary = vocabulary_facts(vocab)
    write_json(draft / "vocabulary.json", vocabulary)
    shared = (vocab, parts, config, sets, vocabulary["size"])
    several = _several_sources(corpus)
    tasks = [ShardTask(name, i, of_one_shard(corpus, name), *shared, several) for i, name in enumerate(names)]
    steps: list[Step] = [(prepare_shard, tasks)]
    if external:  # first, because external files may be rejected
        steps.insert(0, external.step(parts, vocab, Vocabulary(**vocabulary), config, log))
    run_tasks(steps, executor, share, log)
    share.complete("examples", draft, [task.facts for _, of_step in steps for task in of_step])
    if taken := hold_one_out(tasks):
        log.say(f"examples: {taken}")
    facts = [read_done(task.facts) for task in tasks]
    counts = join(draft, parts, facts, sets, config, vocabulary["size"])
    if several:
        counts["heldout"]["sources"] = join_sources(draft / "store", parts / "heldout", several, len(tasks))
    _check(counts)
    entries = tokenizer_of(vocab).vocabulary
    if external:
        counts |= external.join(draft, steps[0][1], config, entries, log)
    _say(counts, config, log)
    overlap = heldout_contamination(draft / "store", entries)
    return {
        "vocabulary": vocabulary["hash"],
        "shards": len(names),
        **counts,
        "heldout_contamination": overlap,
        "libraries": used,
    }


def _several_sources(corpus: Artifact) -> tuple[str, ...]:
    """The names of the sources of a corpus, if they are several."""
    several = len(corpus.counts.get("sources", ())) > 1
    names = tuple(source_names(corpus)) if several else ()
    return names if len(names) > 1 else ()


def _say(counts: Mapping[str, Any], config: ExamplesConfig, log: Log) -> None:
    """Log what was built, and warn if the held-out set is too small for reliable scores."""
    heldout, documents = counts["heldout"]["documents"], counts["documents"]
    log.say(f"examples: {counts['train']['tokens']:,} tokens, {heldout:,} of {documents:,} documents held out")
    for fault, remedy in of_plans(counts["train"]["sequences"], counts["train"]["rows"], config):
        log.say(f"examples: warning: {fault} {remedy}")
    if by_source := counts["heldout"].get("sources"):
        said = ", ".join(f"{source['name']} {source['documents']:,}" for source in by_source)
        log.say(f"examples: documents held out by source: {said}")
    if heldout < FEW_HELDOUT:
        more = "raise examples.heldout" if documents >= 4 * FEW_HELDOUT else "only more text makes them more precise"
        log.say(f"examples: scores on so few held-out documents ({heldout}) will be imprecise; {more}")
    if heldout == 1 and config.plan == "next-sentence":
        log.say("examples: next-sentence prediction is not scored: a random pair needs two held-out documents")


def _check(counts: dict[str, Any]) -> None:
    # No pass may be empty: an epoch takes one pass.
    empty = [name for name, rows in counts["train"]["rows"].items() if not min(rows)]
    if not counts["train"]["documents"] or empty:
        raise DataError(
            f"no training examples for {', '.join(empty) or 'any set'}: {counts['documents']:,} documents in all. "
            "Use a larger corpus, a smaller examples.heldout, or a wider document_range."
        )
