"""What is known about a recipe's texts and examples: from the run folder where possible, otherwise estimated."""

from __future__ import annotations

import math
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from bertwright.core.artifact import MANIFEST, Artifact, open_artifact
from bertwright.core.errors import BertwrightError
from bertwright.core.log import SILENT
from bertwright.corpus.config import CorpusConfig, SourceConfig
from bertwright.estimate.example_lengths import BYTES_A_TOKEN, counted_examples, labelled_texts, phase_examples
from bertwright.examples.config import ExamplesConfig, PlanSet
from bertwright.examples.sequences import BatchSizes, Sequences
from bertwright.recipe import Recipe
from bertwright.train.settings.phase_config import PhaseConfig

BUILT_IN = ("sample", "sample-small")
"""Sources that come with the package."""
_EXPANSION = {"plain": 1, "gz": 3, "zst": 3, "bz2": 4, "xz": 5}
"""Approximate factor by which each compression format expands."""
KEPT = 0.85
"""Share of a source's text that becomes corpus; the rest is dropped or repeated."""
_FILL = {
    "next-sentence": (1.0, 512, 1.3),
    "sentence-order": (1.0, 512, 1.3),
    "doc-sentences": (0.83, 900, 1.4),
    "full-sentences": (0.98, math.inf, 1.0),
}
"""Mean length of an example relative to its maximum, for a Wikipedia; used until the examples exist: a share for short
examples, the length at which the documents are too short for half of it, and how fast it falls. Pairs of 512 tokens
have 254 in the English Wikipedia of MLPerf (twice as many fit into a row); the other lengths follow from documents of
that kind, walked through in a simulation."""

Basis = Literal["examples", "corpus", "sources", "nothing"]


@dataclass(frozen=True)
class Data:
    """What is known about a recipe's input and examples."""

    basis: Basis
    """Where it is known from: artifacts of the run folder, the size of the sources, or nothing but the recipe."""
    text: float | None
    """Bytes of text of the sources; None if not known."""
    tokens: float | None
    """Tokens of the training text; None if not known."""
    sets: Mapping[str, Sequences]
    """Examples of each plan set, by name."""
    imported: Mapping[int, Sequences]
    """Examples of each phase with data made elsewhere, by phase index."""
    heldout: Mapping[str, int]
    """Number of held-out sequences by length; empty if not known."""
    disk: Mapping[str, int]
    """Bytes written by finished stages, by stage."""


NOTHING_KNOWN = Data("nothing", None, None, {}, {}, {}, {})
"""For a recipe whose texts cannot be read; what reads them reports that."""


def read_data(recipe: Recipe, made: Mapping[str, Artifact], found: float | None = None) -> Data:
    """What is known from the finished artifacts `made`, by stage, and from source sizes; reads only labelled texts.

    `found`: bytes of text in the sources, if they are known already.
    """
    prepared = [name for name in ("corpus", "vocab", "examples") if name in made]
    disk = {name: int(made[name].manifest["disk"]["bytes"]) for name in prepared}
    text = float(made["corpus"].counts["text_bytes"]) if "corpus" in made else None
    if "examples" in made:
        return _from_examples(recipe, made["examples"], text, disk)
    if text is None and recipe.corpus is not None:
        found = _text_of(recipe.corpus) if found is None else found
        text = None if found is None else KEPT * found
    tokens = None if text is None else (text / BYTES_A_TOKEN) * (1 - recipe.examples.heldout)
    if "corpus" in made and "vocab" in made and (rate := made["vocab"].counts.get("fertility")):
        # A vocabulary's fertility counts words and marks, a corpus only words: the number of marks is scaled up from
        # the vocabulary's own sample.
        tokens = float(rate) * _words(made["corpus"], made["vocab"]) * (1 - recipe.examples.heldout)
    sets = {plan.name: estimate_examples(plan, recipe.examples, tokens) for plan in recipe.plan_sets()}
    labelled, heldout = _labelled(recipe)
    known = text is not None or labelled
    basis: Basis = "corpus" if "corpus" in made else "sources" if known else "nothing"
    return Data(basis, text, tokens, sets, labelled, heldout, disk)


def source_text(source: SourceConfig, downloads: Path) -> tuple[float | None, str]:
    """The approximate bytes of text in a source, None if it is on another machine and not copied yet, and a description
    of it. Raises whatever opening the source raises."""
    if source.path in BUILT_IN:
        return 2e6, f"{source.path} is built in"
    # Reading compressed files imports much that the built-in sample does not need.
    from bertwright.corpus.errors import NoCopyError
    from bertwright.corpus.sources.known import format_of
    from bertwright.corpus.sources.source import open_source

    try:
        opened = open_source(source, downloads, SILENT, copying=False)
    # Neither a check nor a plan uses the network, so remote data is no error; a damaged local copy of it is one.
    except NoCopyError:
        return None, ""
    size = 0.0
    for file in opened.files:
        size += file.size * _EXPANSION.get(file.compression, 3) / format_of(file.format).bytes_per_text
    return size, str(opened)


def _text_of(corpus: CorpusConfig) -> float | None:
    """The approximate bytes of text in all sources; None if one of them is not here or cannot be read."""
    total = 0.0
    for source in corpus.source:
        try:
            size, _ = source_text(source, corpus.cache_dir)
        except BertwrightError:
            return None  # `check` reports it
        if size is None:
            return None
        total += size * source.weight
    return total


def _labelled(recipe: Recipe) -> tuple[Mapping[int, Sequences], Mapping[str, int]]:
    if not recipe.task.files:
        return {}, {}
    return labelled_texts(recipe)


def estimate_examples(plan: PlanSet, config: ExamplesConfig, tokens: float | None) -> Sequences:
    """The estimated examples made from `tokens` tokens of text."""
    share, half, power = _FILL[config.plan]
    mean = share * plan.length / (1 + (plan.length / half) ** power)
    if tokens is None:
        return Sequences.guessed((), mean, plan.length)
    low, high = plan.document_range
    # [CLS], and a [SEP] after each segment.
    special = 3 if config.pairs else 2
    rows = max(1, round(tokens * (high - low) / max(mean - special, 1.0)))
    return Sequences.guessed((rows,) * config.passes, mean, plan.length)


def _words(corpus: Artifact, vocab: Artifact) -> float:
    """Number of words and marks in the corpus, as a vocabulary counts them."""
    seen, trained = vocab.counts.get("sample_words", 0), vocab.counts.get("trained_on") or {}
    share = trained.get("share") or 0
    return seen / share if share else 1.17 * float(corpus.counts["words"])


def _from_examples(recipe: Recipe, examples: Artifact, text: float | None, disk: Mapping[str, int]) -> Data:
    train, heldout = examples.counts["train"], examples.counts["heldout"]
    sets, imported = counted_examples(recipe, examples.counts)
    lengths = {name: sum(rows) for name, rows in heldout.get("rows", {}).items()}
    return Data("examples", text, float(train.get("tokens", 0)) or None, sets, imported, lengths, disk)


def finished_artifacts(out: Path) -> dict[str, Artifact]:
    """The artifacts that show the amount of data, as far as they are finished in the run folder `out`, by stage."""
    made = {}
    for stage in ("corpus", "vocab", "examples"):
        if (out / stage / MANIFEST).is_file():
            with suppress(BertwrightError):  # those that read it report it
                made[stage] = open_artifact(out / stage, stage)
    return made


def known_before(recipe: Recipe, out: Path, found: float | None = None) -> Data:
    """What is known before a run in the folder `out`, as `read_data` returns it; nothing if the texts cannot be read,
    which is reported where they are."""
    try:
        return read_data(recipe, finished_artifacts(out), found)
    except BertwrightError:
        return NOTHING_KNOWN


def examples_of(recipe: Recipe, index: int, data: Data) -> Sequences:
    """The examples of phase `index` of the recipe, guessed if nothing is known."""
    length = recipe.train.phases[index].length
    return phase_examples(recipe, index, data.sets, data.imported) or Sequences.guessed((), 0.95 * length, length)


def steps_of(phase: PhaseConfig, examples: Sequences) -> int | None:
    """The phase's length in optimizer steps; None if it is in passes over examples whose number is not known."""
    batches = BatchSizes(phase.batch, phase.batch_warmup)
    if phase.steps is not None:
        return phase.steps
    if phase.samples is not None:
        return batches.steps_of(phase.samples)
    if phase.tokens is not None:
        return batches.steps_of(phase.tokens, examples.mean_length)
    assert phase.epochs is not None
    return batches.steps_of(examples.of_epochs(phase.epochs)) if examples.per_pass else None


def sequences_seen(phase: PhaseConfig, examples: Sequences) -> int | None:
    """The number of sequences that a phase trains on until it ends; None if that is not known."""
    steps = steps_of(phase, examples)
    if steps is None:
        return None
    return BatchSizes(phase.batch, phase.batch_warmup).before(min(steps, phase.end_after or steps))
