"""The door of the corpus stage: sources in, shards of sentences out."""

from __future__ import annotations

import shutil
from collections import Counter
from pathlib import Path
from typing import Any

from bertwright.core.artifact import Artifact, Identity, build
from bertwright.core.config import what
from bertwright.core.files import make_folder
from bertwright.core.log import SILENT, Log
from bertwright.core.tasks import default_workers, run_tasks
from bertwright.corpus.config import CorpusConfig
from bertwright.corpus.dedup.exact import buckets, find_duplicates
from bertwright.corpus.errors import SourceError
from bertwright.corpus.filter import REASONS
from bertwright.corpus.parts import Parts, make_parts
from bertwright.corpus.shards import Plan, plan, write_shard
from bertwright.corpus.sources.file import Source, examine, sampled_hash

VERSION = 2
_PARTS = ".parts"


def run(config: CorpusConfig, out: Path, log: Log = SILENT) -> Artifact:
    """The corpus of `config` at `out`: opened if it is there, else built.

    `shards/00000.txt.zst`: one sentence a line, a blank line after each document. `shards/00000.jsonl.zst`: one line of
    facts per document. The bytes are the same for any number of workers and any packaging of the same dump, whatever
    the file is called. An interrupted run goes on where it stopped. Unusable input is a `DataError`.
    """
    sources = [examine(path) for path in _paths(config)]

    def make(draft: Path) -> dict[str, Any]:
        try:
            return _make(config, sources, draft, log)
        except SourceError:
            shutil.rmtree(draft)
            raise

    return build(out, identity(config), log, make)


def identity(config: CorpusConfig) -> Identity:
    """What the corpus is a function of; reads a sample of each source. Raises `DataError` where one cannot be used."""
    settings = {"corpus": {key: value for key, value in what(config).items() if key != "source"}}
    inputs = {f"source {i + 1}": sampled_hash(examine(path).path) for i, path in enumerate(_paths(config))}
    return Identity("corpus", VERSION, settings, inputs)


def _paths(config: CorpusConfig) -> list[Path]:
    return [_builtin(name) or Path(name) for name in config.sources]


def _builtin(name: str) -> Path | None:
    if name not in ("sample", "sample-small"):
        return None
    from bertwright.sample import SAMPLE, SMALL

    return SAMPLE if name == "sample" else SMALL


def _make(config: CorpusConfig, sources: list[Source], draft: Path, log: Log) -> dict[str, Any]:
    """Extract, find duplicates, write shards: three task lists. Returns the counts."""
    folder, shards = make_folder(draft / _PARTS), make_folder(draft / "shards")
    for leftover in draft.rglob(".*.tmp"):  # of a killed run
        leftover.unlink(missing_ok=True)
    workers = config.workers or default_workers()
    made = [make_parts(config, source, number, folder, workers, log) for number, source in enumerate(sources)]
    totals = sum((parts.counts for parts in made), Counter[str]())
    commonest = sorted(totals.items(), key=lambda item: (-item[1], item[0]))
    dropped = {key.removeprefix("dropped."): n for key, n in commonest if key.startswith("dropped.")}
    paths = [path for parts in made for path in parts.paths]
    tasks = buckets(paths, totals["documents"] - sum(dropped.values()), folder) if config.deduplicate else []
    run_tasks(find_duplicates, tasks, workers, "corpus")
    found = plan(paths, tasks, config.shard_bytes, shards)
    if not found.documents:
        raise _nothing_kept(totals, dropped, config)
    run_tasks(write_shard, found.shards, workers, "corpus")
    return _counts(made, totals, dropped, found)


def _counts(made: list[Parts], totals: Counter[str], dropped: dict[str, int], found: Plan) -> dict[str, Any]:
    return {
        **{key: totals[key] for key in ("pages", "redirects", "other_namespaces", "disambiguations", "documents")},
        "dropped": dropped,
        "reasons": {name: REASONS[name].meaning for name in dropped},
        "duplicates": found.duplicates,
        "kept": found.documents,
        "sentences": found.sentences,
        "words": found.words,
        "text_bytes": found.bytes,
        "shards": len(found.shards),
        "source_bytes": totals["source_bytes"],
        "sources": [parts.facts for parts in made],
    }


def _nothing_kept(totals: Counter[str], dropped: dict[str, int], config: CorpusConfig) -> SourceError:
    reasons = ", ".join(f"{name} {n:,}" for name, n in dropped.items()) or "none: nothing was read"
    remedy = REASONS[next(iter(dropped), "empty")].remedy
    return SourceError(
        f"no document is left of {totals['documents']:,} in {', '.join(config.sources)} ({totals['pages']:,} pages, "
        f"{totals['redirects']:,} redirects; dropped by the filter: {reasons}). Most likely {remedy}."
    )
