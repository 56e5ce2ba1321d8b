"""Entry point of the corpus stage: turns sources into shards of sentences."""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import dataclass
from functools import partial
from operator import call
from pathlib import Path
from typing import Any, get_args

from bertwright.core.addresses import redact_credentials
from bertwright.core.artifact import Artifact, build
from bertwright.core.config import Identity
from bertwright.core.errors import RecipeError
from bertwright.core.files import make_folder, remove_leftovers
from bertwright.core.log import SILENT, Log
from bertwright.core.plugins import package_of
from bertwright.core.task_records import record_libraries
from bertwright.core.tasks import Executor, Pool
from bertwright.core.work_split import SINGLE, WorkSplit
from bertwright.corpus.balance import balance, count
from bertwright.corpus.characters import spaced
from bertwright.corpus.config import SOURCES, VERSION, CorpusConfig, SourceKind, sections
from bertwright.corpus.contamination import check_files, text_hash
from bertwright.corpus.decisions import DecidePart, DrawPart, decide_part, draw_part, list_dropped
from bertwright.corpus.dedup.find import find_repetitions
from bertwright.corpus.dropped import FOLDER as DROPPED
from bertwright.corpus.dropped import gather_dropped
from bertwright.corpus.errors import SourceError
from bertwright.corpus.filter import REASONS
from bertwright.corpus.language import Identifier, check_source_language
from bertwright.corpus.links import LINKS, gather_links
from bertwright.corpus.parts import Extraction, Parts, gather
from bertwright.corpus.shards import plan, write_shard
from bertwright.corpus.sources.source import Source, open_source
from bertwright.corpus.wikitext.templates import Table, read_table, templates_of

_PARTS = ".parts"
_LIBRARIES = ("pycld2", "py3langid", "rensa", "sentencex")


def run(
    config: CorpusConfig, out: Path, log: Log = SILENT, executor: Executor | None = None, share: WorkSplit = SINGLE
) -> Artifact:
    """Open the corpus of `config` at `out`, or build it if it does not exist.

    `shards/00000.txt.zst` has one sentence per line and a blank line after each document, `shards/00000.jsonl.zst` one
    line of metadata per document; `links.jsonl.zst` has the categories and links of a wiki's articles. The output is
    byte-identical for any number of workers and any packaging or file name of the same dump. An interrupted run resumes
    where it stopped. Raises `DataError` for unusable input.

    `executor` runs the task lists (default: processes on this machine). Raises `StageIncomplete` when `share` is only a
    part of the work and another process completes the stage.
    """
    inputs = _open(config, log)
    drafts: list[Path] = []

    def make(draft: Path) -> dict[str, Any]:
        drafts.append(draft)
        # Other releases identify languages and split sentences differently, so a draft begun with them is restarted.
        used = record_libraries(draft, _LIBRARIES, log, share.world, _plugins(config))
        return {**_make(inputs, draft, log, pool, share), "libraries": used}

    try:
        with executor or Pool(config.workers, log) as pool:
            return build(out, _identity(inputs), log, make)
    except (RecipeError, SourceError):  # by now no task is running
        for draft in drafts if share.world == 1 else []:  # otherwise other ranks may still use it
            shutil.rmtree(draft, ignore_errors=True)
        raise


def identity(config: CorpusConfig) -> Identity:
    """The identity of the corpus. Reads a sample of each source and does not access the network.

    Raises `DataError` where a source cannot be used, or is remote and has no local copy yet.
    """
    return _identity(_open(config, SILENT, copying=False))


def check_inputs(config: CorpusConfig) -> None:
    """Raise what the stage would raise before it extracts anything, without the network: sources that cannot be used or
    that the settings do not apply to, invalid templates, a dump in another language. `NoCopyError` if a source is
    remote and has no local copy."""
    inputs = _open(config, SILENT, copying=False)
    if inputs.table:
        templates_of(config.language, inputs.table)
    _check_languages(inputs, SILENT)


def _plugins(config: CorpusConfig) -> dict[str, str]:
    """The package and version of each source format of another package."""
    kinds = {source.format for source in config.source} - {"auto", *get_args(SourceKind)}
    return {kind: package_of(SOURCES, kind, kind.partition(":")[0]) for kind in sorted(kinds)}


@dataclass(frozen=True)
class _Inputs:
    """Everything that determines the corpus."""

    config: CorpusConfig
    sources: tuple[Source, ...]
    table: Table | None
    """The user's own templates."""


def _open(config: CorpusConfig, log: Log, *, copying: bool = True) -> _Inputs:
    sources = tuple(open_source(source, config.cache_dir, log, copying=copying) for source in config.source)
    for key in ("wikitext", "keep_disambiguation"):
        is_set = getattr(config, key) != CorpusConfig.model_fields[key].default
        if is_set and not any(source.is_wiki for source in sources):
            raise RecipeError(f"corpus.{key} applies only to dumps of wikis, and no source is one. Remove the key.")
    table = read_table(config.wikitext.templates) if config.wikitext.templates else None
    return _Inputs(config, sources, table)


def _check_languages(inputs: _Inputs, log: Log) -> None:
    # Reject a dump in another language before extraction, which takes half an hour per GB of bz2 (decision 0009).
    for source in inputs.sources:
        check_source_language(inputs.config, source.files[0], log)


def _identity(inputs: _Inputs) -> Identity:
    config = inputs.config
    hashes = {f"source {i + 1}": source.sampled_hash for i, source in enumerate(inputs.sources)}
    hashes |= {f"contamination {i + 1}": text_hash(path) for i, path in enumerate(config.contamination)}
    if inputs.table:
        templates_of(config.language, inputs.table)  # raises for an invalid table before any work is done
        hashes["templates"] = hashlib.sha256(inputs.table.text.encode()).hexdigest()
    return Identity("corpus", VERSION, sections(config), hashes)


def _make(inputs: _Inputs, draft: Path, log: Log, executor: Executor, share: WorkSplit) -> dict[str, Any]:
    """Extract, find repetitions, decide what to keep and write shards, as task lists. Returns the counts."""
    config, folder, shards = inputs.config, make_folder(draft / _PARTS), make_folder(draft / "shards")
    _check_languages(inputs, log)
    _note_identification(config, log)
    paths = [
        Extraction(config, source, number, inputs.table, folder, log, executor, share).parts()
        for number, source in enumerate(inputs.sources)
    ]
    # The steps below need the parts of all ranks: every rank except the last to finish stops here (decision 0012).
    share.complete("corpus", draft, [part.with_suffix(".json") for parts in paths for part in parts])
    # From here on no other rank writes, so temporary files can only come from killed writers.
    remove_leftovers(draft)
    extracted = [gather(config, source, parts, log) for source, parts in zip(inputs.sources, paths, strict=True)]
    parts = _decide(config, extracted, folder, executor)
    counts = count(extracted)
    if not counts["kept"]:
        raise _nothing_kept(counts, config)
    planned = plan(parts, config.shard_bytes, config.shards, shards)
    tasks = [partial(write_shard, shard) for shard in planned]
    if config.filter.keep_dropped:  # one long task, so it starts first
        tasks.insert(0, partial(gather_dropped, parts, draft / DROPPED, list_dropped))
    if any(source.is_wiki for source in inputs.sources):
        tasks.insert(0, partial(gather_links, parts, draft / LINKS))
    executor.map(call, tasks, "corpus")
    for line in balance(counts):
        log.say(line)
    # Search the finished shards, so that copies by weight, dropped documents and removed paragraphs are accounted for.
    texts = [shard.files[0] for shard in planned]
    leaks = check_files(config.contamination, texts, folder, executor, spaced=spaced(config.language))
    return {**counts, "shards": len(planned), "contamination": leaks}


def _decide(config: CorpusConfig, extracted: list[Parts], folder: Path, executor: Executor) -> tuple[Path, ...]:
    """Decide which documents and paragraphs to keep; returns the parts of all sources."""
    parts = tuple(path for of_source in extracted for path in of_source.paths)
    weights = [source.weight for source, own in zip(config.source, extracted, strict=True) for _ in own.paths]
    draws = (DrawPart(part, weight, config.seed) for part, weight in zip(parts, weights, strict=True))
    executor.map(draw_part, draws, "corpus")
    repeated = find_repetitions(config.deduplicate, parts, folder, executor, spaced=spaced(config.language))
    # With the filter off, a document of one sentence is kept, so paragraphs may be removed as long as one is left.
    min_sentences = config.filter.min_sentences if config.filter.enabled else 1
    tasks = (DecidePart(part, number, repeated, min_sentences) for number, part in enumerate(parts))
    executor.map(decide_part, tasks, "corpus")
    return parts


def _note_identification(config: CorpusConfig, log: Log) -> None:
    wanted = config.filter.languages or (config.language,)
    if config.filter.enabled and config.filter.identify and not Identifier(wanted).knows:
        names = " and ".join(wanted)
        log.say(f"corpus: too few texts in {names} were measured, so no document is dropped because of its language")


def _nothing_kept(counts: dict[str, Any], config: CorpusConfig) -> SourceError:
    dropped = counts["dropped"]
    reasons = ", ".join(f"{name} {n:,}" for name, n in dropped.items()) or "none: nothing was read"
    # `dropped` begins with the most common reason, so this is the most likely remedy.
    remedy = REASONS[next(iter(dropped), "empty")].remedy
    named = ", ".join(redact_credentials(source.path) for source in config.source)
    return SourceError(
        f"no document is left of {counts['documents']:,} in {named} ({counts['pages']:,} pages, "
        f"{counts['redirects']:,} redirects; dropped by the filter: {reasons}). Most likely cause: {remedy}."
    )
