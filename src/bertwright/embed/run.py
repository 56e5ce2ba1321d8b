"""Trains vectors of texts from what a model was made of, scores them, and writes the folders that others load.

OUT/corpus         the texts of --source, if they are given
OUT/pairs          the pairs: data/train.jsonl, data/dev.jsonl
OUT/run            the run that trains; OUT/run/export/hf is the folder that sentence-transformers loads
OUT/static         a table of vectors of words, distilled from it, which model2vec and sentence-transformers load
OUT/scores.json    the scores on the held-out pairs

What is finished is not made again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pydantic import TypeAdapter
from typing_extensions import TypedDict

from bertwright.core.artifact import Artifact
from bertwright.core.files import read_typed, remove, sha256, sha256_of, write_json
from bertwright.core.log import SILENT, Log
from bertwright.corpus.pairs import HELDOUT
from bertwright.embed.material import Material
from bertwright.embed.recipe import draft_embedding
from bertwright.embed.scores import CENTRED, RAW, STATIC, TRAINED, Row, Scorer, static_encoder
from bertwright.exams.retrieval import read_items
from bertwright.exams.similarity import read_likeness
from bertwright.export.runtimes.runtime import Published
from bertwright.export.runtimes.static import Static
from bertwright.finetune.draft import Draft
from bertwright.finetune.seeds import finetune
from bertwright.formats.target import atomic_folder
from bertwright.model.device import resolve_device
from bertwright.model.text_encoder import Encoder
from bertwright.pipeline.run_folder import RunFolder

SCORES = "scores.json"


@dataclass(frozen=True)
class Wanted:
    """What to train."""

    material: Material
    dimensions: tuple[int, ...] = ()
    """Sizes of vectors that are trained beside the full one."""
    sts: Path | None = None
    """A file of sentences with scores of how alike they are."""
    overrides: Sequence[str] = ()
    """The user's changes of the recipe."""


class EmbedResults(TypedDict):
    """What was trained, and its scores."""

    model: str
    """The folder for sentence-transformers."""
    static: str
    """The folder of the static table."""
    train_pairs: int
    heldout_pairs: int
    queries: int
    passages: int
    rows: list[Row]


class _Kept(TypedDict):
    inputs: str
    results: EmbedResults


def draft_of(wanted: Wanted, out: Path, log: Log = SILENT) -> tuple[Artifact, Draft]:
    """The pairs, which are made if they are not there, and the recipe for them. Raises as `Material.collect` and
    `finetune.draft`."""
    if wanted.sts is not None:
        read_likeness(wanted.sts)  # before any work
    pairs = wanted.material.collect(out, log)
    return pairs, draft_embedding(wanted.material.model, pairs, wanted.dimensions, wanted.overrides)


def embed(wanted: Wanted, out: Path, log: Log = SILENT) -> EmbedResults:
    """Make the pairs, train on them, write the static table, and score everything; an interrupted call is continued.

    Raises as `draft_of`, and whatever a run raises.
    """
    pairs, drafted = draft_of(wanted, out, log)
    counts = pairs.counts
    log.say(f"embed: {counts['train_pairs']:,} pairs to train on, {counts['heldout_pairs']:,} are held out")
    finetune(drafted, out / "run", log=log)
    run = RunFolder(out / "run")
    folder, static, export = out / "run" / "export" / "hf", out / "static", run.artifact("export").fingerprint
    sts = sha256(wanted.sts) if wanted.sts else ""
    inputs = sha256_of([pairs.fingerprint, export, list(wanted.dimensions), sts])
    if (out / SCORES).is_file():
        kept = read_typed(out / SCORES, TypeAdapter(_Kept))
        if kept["inputs"] == inputs and static.is_dir():
            return kept["results"]
    if static.is_dir():
        remove(static)
    with atomic_folder(static) as draft:
        Static().write(Published(folder), draft)
    results = _scored(wanted, pairs, (folder, static), log)
    write_json(out / SCORES, _Kept(inputs=inputs, results=results))
    return results


def _scored(wanted: Wanted, pairs: Artifact, folders: tuple[Path, Path], log: Log) -> EmbedResults:
    trained, static = folders
    items = read_items(pairs.file(HELDOUT))
    scorer = Scorer(items, read_likeness(wanted.sts) if wanted.sts else [], log)
    device = resolve_device("auto")
    rows = [row for row in [scorer.word_row()] if row is not None]
    before = Encoder(wanted.material.model, device)
    rows += scorer.rows(RAW, before.encode, centred=CENTRED, prompts=before.prompts)
    after = Encoder(trained, device)
    rows += scorer.rows(TRAINED, after.encode, wanted.dimensions, prompts=after.prompts)
    rows += scorer.rows(STATIC, static_encoder(static, after.tokenizer))
    return EmbedResults(
        model=str(trained),
        static=str(static),
        train_pairs=int(pairs.counts["train_pairs"]),
        heldout_pairs=int(pairs.counts["heldout_pairs"]),
        queries=len(items.questions),
        passages=len(items.passages),
        rows=rows,
    )
