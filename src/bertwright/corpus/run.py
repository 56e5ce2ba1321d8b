"""The door of the corpus stage: sources in, shards of sentences out."""

from __future__ import annotations

import hashlib
import shutil
from collections import Counter
from functools import partial
from operator import call
from pathlib import Path
from typing import Any

from bertwright.core.artifact import Artifact, build
from bertwright.core.config import Identity
from bertwright.core.errors import RecipeError
from bertwright.core.files import make_folder, remove_leftovers
from bertwright.core.libraries import libraries
from bertwright.core.log import SILENT, Log
from bertwright.core.redact import redact_credentials
from bertwright.core.tasks import Executor, Pool
from bertwright.core.work_split import SINGLE, WorkSplit
from bertwright.corpus.alphabet import spaced
from bertwright.corpus.balance import LEFT_OUT, balance
from bertwright.corpus.config import VERSION, CorpusConfig, sections
from bertwright.corpus.contamination import check_files, text_hash
from bertwright.corpus.decide import DecidePart, decide_part, set_aside, tally, tally_bytes
from bertwright.corpus.dedup.drawn import DrawPart, draw_part
from bertwright.corpus.dedup.find import find_repetitions
from bertwright.corpus.dropped import FOLDER as DROPPED
from bertwright.corpus.dropped import gather_dropped
from bertwright.corpus.errors import SourceError
from bertwright.corpus.filter import REASONS
from bertwright.corpus.language import Identifier
from bertwright.corpus.own_language import compare_language
from bertwright.corpus.parts import Extraction, Parts, gather
from bertwright.corpus.shards import plan, write_shard
from bertwright.corpus.sources.source import Source, open_source
from bertwright.corpus.wikitext.templates import Table, read_table, templates_of

_PARTS = ".parts"
_LIBRARIES = ("pycld2", "py3langid", "rensa", "sentencex")


def run(
    config: CorpusConfig, out: Path, log: Log = SILENT, executor: Executor | None = None, share: WorkSplit = SINGLE
) -> Artifact:
    """The corpus of `config` at `out`: opened if it is there, else built.

    `shards/00000.txt.zst`: one sentence a line, a blank line after each document. `shards/00000.jsonl.zst`: one line of
    facts per document. The bytes are the same for any number of workers and any packaging of the same dump, whatever
    the file is called. An interrupted run goes on where it stopped. Unusable input is a `DataError`.

    Task lists are done by `executor` (default: processes on this machine). Raises `StageIncomplete` when `share` is not
    the whole and another process completes the stage.
    """
    sources, table = _opened(config, log), _table(config)

    drafts: list[Path] = []

    def make(draft: Path) -> dict[str, Any]:
        drafts.append(draft)
        used = libraries(draft, _LIBRARIES, log)
        return {**_make(config, sources, table, draft, log, pool, share), "libraries": used}

    try:
        with executor or Pool(config.workers) as pool:
            return build(out, _identity(config, sources, table), log, make)
    except (RecipeError, SourceError):  # by now no task is running
        for draft in drafts if share.world == 1 else []:  # else it may be of use to other ranks
            shutil.rmtree(draft, ignore_errors=True)
        raise


def identity(config: CorpusConfig) -> Identity:
    """What the corpus is a function of; reads a sample of each source, and asks nothing of the network.

    Raises `DataError` where a source cannot be used, or lies on another machine and was not copied yet.
    """
    return _identity(config, _opened(config, SILENT, copying=False), _table(config))


def _opened(config: CorpusConfig, log: Log, *, copying: bool = True) -> list[Source]:
    sources = [open_source(source, config.cache_dir, log, copying=copying) for source in config.source]
    for key in ("wikitext", "keep_disambiguation"):
        is_set = getattr(config, key) != CorpusConfig.model_fields[key].default
        if is_set and not any(source.is_wiki for source in sources):
            raise RecipeError(f"corpus.{key} is for dumps of wikis, and no source is one. Leave it out.")
    return sources


def _table(config: CorpusConfig) -> Table | None:
    return read_table(config.wikitext.templates) if config.wikitext.templates else None


def _identity(config: CorpusConfig, sources: list[Source], table: Table | None) -> Identity:
    inputs = {f"source {i + 1}": source.sampled_hash for i, source in enumerate(sources)}
    inputs |= {f"contamination {i + 1}": text_hash(path) for i, path in enumerate(config.contamination)}
    if table:
        templates_of(config.language, table)  # a table with a fault is refused before anything is made
        inputs["templates"] = hashlib.sha256(table.text.encode()).hexdigest()
    return Identity("corpus", VERSION, sections(config), inputs)


def _make(
    config: CorpusConfig,
    sources: list[Source],
    table: Table | None,
    draft: Path,
    log: Log,
    executor: Executor,
    share: WorkSplit,
) -> dict[str, Any]:
    """Extract, find what is repeated, decide what is left, write shards: task lists. Returns the counts."""
    folder, shards = make_folder(draft / _PARTS), make_folder(draft / "shards")
    for source in sources:
        compare_language(config, source.files[0], log)
    _note_identification(config, log)
    found = [
        Extraction(config, source, number, table, folder, log, executor, share).parts()
        for number, source in enumerate(sources)
    ]
    share.complete("corpus", draft, [path.with_suffix(".json") for paths in found for path in paths])
    remove_leftovers(draft)
    made = [gather(config, source, paths, log) for source, paths in zip(sources, found, strict=True)]
    parts = _decide(config, made, folder, executor)
    counts = _counts(made)
    if not counts["kept"]:
        raise _nothing_kept(counts, config)
    laid = plan(parts, config.shard_bytes, config.shards, shards)
    last = [partial(write_shard, shard) for shard in laid]
    if config.filter.keep_dropped:  # one long task, so it is begun first
        last.insert(0, partial(gather_dropped, parts, draft / DROPPED, set_aside))
    executor.map(call, last, "corpus")
    for line in balance(counts):
        log.say(line)
    texts = [shard.files[0] for shard in laid]
    leaks = check_files(config.contamination, texts, folder, executor, spaced=spaced(config.language))
    return {**counts, "shards": len(laid), "contamination": leaks}


def _decide(config: CorpusConfig, made: list[Parts], folder: Path, executor: Executor) -> tuple[Path, ...]:
    """Decide what becomes of each document; returns the parts of all sources."""
    parts = tuple(path for each in made for path in each.paths)
    weights = [source.weight for source, each in zip(config.source, made, strict=True) for _ in each.paths]
    lots = (DrawPart(part, weight, config.seed) for part, weight in zip(parts, weights, strict=True))
    executor.map(draw_part, lots, "corpus")
    repeated = find_repetitions(config.deduplicate, parts, folder, executor, spaced=spaced(config.language))
    fewest = config.filter.min_sentences if config.filter.enabled else 1
    tasks = (DecidePart(part, number, repeated, fewest) for number, part in enumerate(parts))
    executor.map(decide_part, tasks, "corpus")
    return parts


def _counts(made: list[Parts]) -> dict[str, Any]:
    """What extraction and settling counted, altogether and by source."""
    read = sum((parts.counts for parts in made), Counter[str]())
    tallies = [tally(parts.paths) for parts in made]
    commonest = sorted(read.items(), key=lambda item: (-item[1], item[0]))
    dropped, removed, masked = (
        {key.removeprefix(prefix): n for key, n in commonest if key.startswith(prefix)}
        for prefix in ("dropped.", "removed.", "masked.")
    )
    sizes = sum((tally_bytes(parts.paths) for parts in made), Counter[str]())
    return {
        **{key: read[key] for key in ("pages", "redirects", "other_namespaces", "disambiguations", "documents")},
        "dropped": dropped,
        "reasons": {name: REASONS[name].meaning for name in dropped},
        "removed_paragraphs": removed,
        "masked": masked,
        **{key: sum(each[key] for each in tallies) for key in tallies[0]},
        "bytes": {
            "documents": read["document_bytes"],
            "dropped": {name: read[f"dropped_bytes.{name}"] for name in dropped},
            "removed_paragraphs": read["removed_bytes"],
            **{name: sizes[name] for name in ("kept", *LEFT_OUT, "duplicate_paragraphs")},
        },
        "source_bytes": read["source_bytes"],
        "sources": [
            {**parts.facts, "pages": parts.counts["pages"], "documents": parts.counts["documents"], **each}
            for parts, each in zip(made, tallies, strict=True)
        ],
    }


def _note_identification(config: CorpusConfig, log: Log) -> None:
    wanted = config.filter.languages or (config.language,)
    if config.filter.enabled and config.filter.identify and not Identifier(wanted).knows:
        names = " and ".join(wanted)
        log.say(f"corpus: neither CLD2 nor py3langid knows {names}, so no document is judged by its language")


def _nothing_kept(counts: dict[str, Any], config: CorpusConfig) -> SourceError:
    dropped = counts["dropped"]
    reasons = ", ".join(f"{name} {n:,}" for name, n in dropped.items()) or "none: nothing was read"
    remedy = REASONS[next(iter(dropped), "empty")].remedy
    named = ", ".join(redact_credentials(source.path) for source in config.source)
    return SourceError(
        f"no document is left of {counts['documents']:,} in {named} ({counts['pages']:,} pages, "
        f"{counts['redirects']:,} redirects; dropped by the filter: {reasons}). Most likely {remedy}."
    )
