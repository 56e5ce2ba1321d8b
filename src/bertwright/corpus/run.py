"""The door of the corpus stage: sources in, shards of sentences out."""

from __future__ import annotations

import hashlib
import shutil
from dataclasses import dataclass
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
from bertwright.corpus.balance import balance, count
from bertwright.corpus.config import VERSION, CorpusConfig, sections
from bertwright.corpus.contamination import check_files, text_hash
from bertwright.corpus.decide import DecidePart, decide_part, set_aside
from bertwright.corpus.dedup.find import find_repetitions
from bertwright.corpus.dedup.outcome import DrawPart, draw_part
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
    inputs = _opened(config, log)
    drafts: list[Path] = []

    def make(draft: Path) -> dict[str, Any]:
        drafts.append(draft)
        # Newer releases identify languages and split sentences otherwise: a draft begun with others is begun anew.
        used = libraries(draft, _LIBRARIES, log, share.world)
        return {**_make(inputs, draft, log, pool, share), "libraries": used}

    try:
        with executor or Pool(config.workers) as pool:
            return build(out, _identity(inputs), log, make)
    except (RecipeError, SourceError):  # by now no task is running
        for draft in drafts if share.world == 1 else []:  # else it may be of use to other ranks
            shutil.rmtree(draft, ignore_errors=True)
        raise


def identity(config: CorpusConfig) -> Identity:
    """What the corpus is a function of; reads a sample of each source, and asks nothing of the network.

    Raises `DataError` where a source cannot be used, or lies on another machine and was not copied yet.
    """
    return _identity(_opened(config, SILENT, copying=False))


@dataclass(frozen=True)
class _Inputs:
    """What the corpus is a function of."""

    config: CorpusConfig
    sources: tuple[Source, ...]
    table: Table | None
    """The user's own templates."""


def _opened(config: CorpusConfig, log: Log, *, copying: bool = True) -> _Inputs:
    sources = tuple(open_source(source, config.cache_dir, log, copying=copying) for source in config.source)
    for key in ("wikitext", "keep_disambiguation"):
        is_set = getattr(config, key) != CorpusConfig.model_fields[key].default
        if is_set and not any(source.is_wiki for source in sources):
            raise RecipeError(f"corpus.{key} is for dumps of wikis, and no source is one. Leave it out.")
    table = read_table(config.wikitext.templates) if config.wikitext.templates else None
    return _Inputs(config, sources, table)


def _identity(inputs: _Inputs) -> Identity:
    config = inputs.config
    hashes = {f"source {i + 1}": source.sampled_hash for i, source in enumerate(inputs.sources)}
    hashes |= {f"contamination {i + 1}": text_hash(path) for i, path in enumerate(config.contamination)}
    if inputs.table:
        templates_of(config.language, inputs.table)  # a table with a fault is refused before anything is made
        hashes["templates"] = hashlib.sha256(inputs.table.text.encode()).hexdigest()
    return Identity("corpus", VERSION, sections(config), hashes)


def _make(inputs: _Inputs, draft: Path, log: Log, executor: Executor, share: WorkSplit) -> dict[str, Any]:
    """Extract, find what is repeated, decide what is left, write shards: task lists. Returns the counts."""
    config, folder, shards = inputs.config, make_folder(draft / _PARTS), make_folder(draft / "shards")
    # A dump in another language is refused before its extraction, which takes half an hour a GB of bz2 (decision
    # 0009).
    for source in inputs.sources:
        compare_language(config, source.files[0], log)
    _note_identification(config, log)
    paths = [
        Extraction(config, source, number, inputs.table, folder, log, executor, share).parts()
        for number, source in enumerate(inputs.sources)
    ]
    # The lists below need the parts of all ranks: every rank but the last to finish ends here (decision 0012).
    share.complete("corpus", draft, [part.with_suffix(".json") for parts in paths for part in parts])
    # From here on no other rank writes, so temporary files can only be those of killed writers.
    remove_leftovers(draft)
    extracted = [gather(config, source, parts, log) for source, parts in zip(inputs.sources, paths, strict=True)]
    parts = _decide(config, extracted, folder, executor)
    counts = count(extracted)
    if not counts["kept"]:
        raise _nothing_kept(counts, config)
    planned = plan(parts, config.shard_bytes, config.shards, shards)
    tasks = [partial(write_shard, shard) for shard in planned]
    if config.filter.keep_dropped:  # one long task, so it is begun first
        tasks.insert(0, partial(gather_dropped, parts, draft / DROPPED, set_aside))
    executor.map(call, tasks, "corpus")
    for line in balance(counts):
        log.say(line)
    # In the finished shards: copies by weight, dropped documents and removed paragraphs count as they stand there.
    texts = [shard.files[0] for shard in planned]
    leaks = check_files(config.contamination, texts, folder, executor, spaced=spaced(config.language))
    return {**counts, "shards": len(planned), "contamination": leaks}


def _decide(config: CorpusConfig, extracted: list[Parts], folder: Path, executor: Executor) -> tuple[Path, ...]:
    """Decide what becomes of each document; returns the parts of all sources."""
    parts = tuple(path for of_source in extracted for path in of_source.paths)
    weights = [source.weight for source, own in zip(config.source, extracted, strict=True) for _ in own.paths]
    draws = (DrawPart(part, weight, config.seed) for part, weight in zip(parts, weights, strict=True))
    executor.map(draw_part, draws, "corpus")
    repeated = find_repetitions(config.deduplicate, parts, folder, executor, spaced=spaced(config.language))
    # With the filter off a document of one sentence is kept, so paragraphs may be taken from it as long as one is
    # left.
    min_sentences = config.filter.min_sentences if config.filter.enabled else 1
    tasks = (DecidePart(part, number, repeated, min_sentences) for number, part in enumerate(parts))
    executor.map(decide_part, tasks, "corpus")
    return parts


def _note_identification(config: CorpusConfig, log: Log) -> None:
    wanted = config.filter.languages or (config.language,)
    if config.filter.enabled and config.filter.identify and not Identifier(wanted).knows:
        names = " and ".join(wanted)
        log.say(f"corpus: neither CLD2 nor py3langid knows {names}, so no document is judged by its language")


def _nothing_kept(counts: dict[str, Any], config: CorpusConfig) -> SourceError:
    dropped = counts["dropped"]
    reasons = ", ".join(f"{name} {n:,}" for name, n in dropped.items()) or "none: nothing was read"
    # `dropped` begins with the commonest reason, so this is the likeliest remedy.
    remedy = REASONS[next(iter(dropped), "empty")].remedy
    named = ", ".join(redact_credentials(source.path) for source in config.source)
    return SourceError(
        f"no document is left of {counts['documents']:,} in {named} ({counts['pages']:,} pages, "
        f"{counts['redirects']:,} redirects; dropped by the filter: {reasons}). Most likely {remedy}."
    )
