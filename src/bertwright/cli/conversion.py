"""Implements `bertwright convert`: writes examples of a run or of another program, or documents, in a common format."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bertwright.core.errors import MissingExtraError, RecipeError
from bertwright.core.log import SILENT, Log
from bertwright.core.numbers import size_of
from bertwright.corpus.config import CorpusConfig
from bertwright.examples.config import PlanSet
from bertwright.examples.loader import LoaderSettings
from bertwright.examples.planned import open_heldout, open_loader, with_labels
from bertwright.examples.store import Store
from bertwright.export.certify.measure import Job, run_job
from bertwright.export.published_copy import as_published
from bertwright.export.runtimes.members import runtime_named
from bertwright.export.runtimes.runtime import Published
from bertwright.formats import convert as between
from bertwright.formats.export import ExportSet, export, export_documents
from bertwright.formats.format import Provenance
from bertwright.formats.known import document_format_of, holds_examples
from bertwright.formats.target import Target, atomic_folder, refuse_existing
from bertwright.model.pretrained_config import read_pretrained
from bertwright.pipeline.run_folder import RunFolder, is_trained, recorded_recipe
from bertwright.recipe import Recipe
from bertwright.shipped import is_run_folder
from bertwright.vocab.load import read_vocabulary


@dataclass(frozen=True)
class ConvertOptions:
    """Options that the source itself does not determine."""

    vocabulary: Path | None = None
    """For a folder of examples: its vocab.txt, which the word pieces of LDDL require."""
    files: int = 0
    """For a run: number of files per phase; 0: one per corpus shard."""
    heldout: int | None = None
    """For a run: maximum number of held-out examples; None: all."""
    quarantine: bool = False
    """For a folder of examples: whether damaged files are left out and named."""


def convert(
    source: Path, destination: Path, target: Target, options: ConvertOptions = ConvertOptions(), log: Log = SILENT
) -> dict[str, Any]:
    """Write `source` as `target` into the new folder `destination`; returns what was written.

    A run folder yields the examples of each of its phases, with the masks of its recipe drawn once per pass, in
    `options.files` files, and at most `options.heldout` held-out examples, example int(i·(n/heldout)) of n (the rule of
    the MLPerf evaluation set); as `megatron`, it yields its training documents. Any other source must be a folder of
    examples in one of the formats.
    """
    files, heldout = options.files, options.heldout
    _check(source, target)
    if (source / "recipe.toml").is_file():
        if options.vocabulary or options.quarantine or target.length or target.predictions:
            raise RecipeError(
                f"{source} is a run folder: its recipe sets vocabulary, length and predictions. Leave these options "
                "out."
            )
        return _run(source, destination, target, files, heldout, log)
    if files or heldout is not None:
        raise RecipeError(
            f"{source} is not a run folder: each of its files becomes one file. Leave out --files and --heldout."
        )
    entries = read_vocabulary(options.vocabulary) if options.vocabulary else None
    return between.convert(source, destination, target, entries, options.quarantine, log)


def convert_model(source: Path, destination: Path, name: str, log: Log = SILENT) -> dict[str, Any]:
    """Write a published model, a folder of transformers or a run with its export, into the new folder `destination` as
    the runtime called `name` reads it; returns what was written.

    Raises `MissingExtraError` or `RecipeError` before anything is written.
    """
    runtime = runtime_named(name)
    if runtime.reads != name:
        what = f"what {runtime.reads} writes: --to {runtime.reads}" if runtime.reads else "the published folder itself"
        raise RecipeError(f"{runtime.title} reads {what}. Nothing else has to be written for it.")
    if missing := runtime.missing_to_write():
        raise MissingExtraError(missing)
    given = read_pretrained(source / "export" if is_run_folder(source) else source)
    with as_published(given.source) as folder:
        model = Published(folder)
        if why := runtime.refusal(model):
            raise RecipeError(why)
        with atomic_folder(destination) as draft:
            # In a process of its own: libraries of runtimes change theirs, such as the stack for signals (OpenVINO).
            run_job(Job(name, str(model.folder), str(draft)), runtime.title)
            size = sum(file.stat().st_size for file in draft.rglob("*") if file.is_file())
    log.say(f"convert: {given.source} for {runtime.title} {runtime.version()}, {size_of(size)}")
    if name == "static" and model.head == "masked":
        log.say(
            "convert: the model was trained to fill in words, not for vectors, so the table tells texts apart less "
            "well than that of a model that `bertwright embed` trained"
        )
    return {"to": name, "version": runtime.version(), "architecture": model.architecture, "bytes": size}


def convert_to_page(source: Path, destination: Path, log: Log = SILENT) -> dict[str, Any]:
    """Write a published model, a folder of transformers or a run with its export, into the new file `destination`, a
    page that a browser opens; returns what was written.

    Raises `MissingExtraError` or `RecipeError` before anything is written.
    """
    from bertwright.serve.inside.page import write_page  # and with it the settings of all stages

    if destination.suffix not in (".html", ".htm"):
        raise RecipeError(
            f"{destination} does not end with .html, by which a browser knows a page. Give {destination.name}.html."
        )
    refuse_existing(destination)
    return write_page(source, destination, log)


def _check(source: Path, target: Target) -> None:
    """Refuse a source that does not exist, and settings that would have no effect."""
    if not source.exists():
        raise RecipeError(f"{source} does not exist. Give a run folder, or a folder of examples.")
    known = target.format if holds_examples(target.kind) else None
    if target.compress and not (known and known.compressible):
        raise RecipeError(
            f"--gzip applies only to TFRecord files; {target.kind} is compressed in its own way. Leave it out."
        )
    if not (known and known.padded) and (target.length or target.predictions):
        raise RecipeError(
            f"{target.kind} is not padded, so it has no row size to choose. Leave out --length and --predictions."
        )


def _run(source: Path, destination: Path, target: Target, files: int, heldout: int | None, log: Log) -> dict[str, Any]:
    (recipe, different), run = recorded_recipe(source), RunFolder(source)
    examples, vocab = run.artifact("examples"), run.artifact("vocab")
    if recipe.corpus is None:
        raise RecipeError(f"{source} has no corpus: every phase has its own data. Convert those folders instead.")
    name = _corpus_name(recipe.corpus)
    if not holds_examples(target.kind) and (documents := document_format_of(target.kind)):
        if heldout is not None:
            raise RecipeError(
                f"{target.kind} contains only the training documents of a run, no held-out documents. Leave out "
                "--heldout."
            )
        return export_documents(Store.open(examples, vocab=vocab), destination, documents, name, files, log)
    if different:
        log.say(
            "convert: recipe.toml differs from the settings that the run was made with; those settings are used: "
            f"{'; '.join(different)}"
        )
    # Settings are sealed with the artifacts made from them; until then recipe.toml may still change.
    if not is_trained(source):
        log.say("convert: nothing is trained yet, so seed, batches and masks are those of recipe.toml")
    sets = _export_sets(recipe, run, target, heldout, log)
    if recipe.examples.plan == "sentence-order":
        log.say(
            "convert: the labels are for sentence order (1: swapped), but other programs read them as next-sentence "
            "labels; train on them with examples.plan=sentence-order, or make a run with examples.plan=next-sentence "
            "for other programs"
        )
    entries = read_vocabulary(vocab.file("vocab.txt"))
    return export(sets, destination, target, files or int(examples.counts["shards"]), entries, log)


def _export_sets(recipe: Recipe, run: RunFolder, target: Target, heldout: int | None, log: Log) -> list[ExportSet]:
    """The examples of the phases without data of their own; `RecipeError` if there is no such phase, or if the format
    cannot hold them."""
    if target.format.pairs_only and not recipe.examples.pairs:
        raise RecipeError(
            f"{target.kind.upper()} holds only pairs with a label, but the examples of {run.path} are no pairs "
            f"(examples.plan={recipe.examples.plan}). Use another format, such as datasets."
        )
    sets = list[ExportSet]()
    for i, phase in enumerate(recipe.train.phases):
        if phase.data is not None:
            log.say(f"convert: phase {i} has its own data, {phase.data}, which is not converted")
            continue
        exported = _export_set(recipe, i, run, target, heldout)
        if target.format.pairs_only:
            exported = _with_labels(exported, target, log)
        # Phases with the same length or document range would otherwise write into the same folder.
        taken = exported.folder in (other.folder for other in sets)
        sets.append(replace(exported, folder=f"phase_{i}/{exported.folder}") if taken else exported)
    if not sets:
        raise RecipeError(f"every phase of {run.path} has its own data. Convert those folders instead.")
    return sets


def _with_labels(exported: ExportSet, target: Target, log: Log) -> ExportSet:
    """Leave out the held-out examples without a label, which the format cannot hold, and log how many they are."""
    labelled = with_labels(exported.heldout)
    if left_out := len(exported.heldout) - len(labelled):
        log.say(
            f"convert: {exported.folder}: {left_out:,} of {len(exported.heldout):,} held-out examples have no label (a "
            f"random pair needs two held-out documents), so {target.kind.upper()} cannot hold them: they are left out"
        )
    return replace(exported, heldout=labelled)


def _corpus_name(corpus: CorpusConfig) -> str:
    return f"corpus_{corpus.language}"


def _export_set(recipe: Recipe, index: int, run: RunFolder, target: Target, heldout: int | None) -> ExportSet:
    assert recipe.corpus is not None
    phase, examples, vocab = recipe.train.phases[index], run.artifact("examples"), run.artifact("vocab")
    # Files hold one drawing of the masks per pass: training on them sees the same masks repeatedly.
    masking = phase.masking.model_copy(update={"static": True})
    batching = (phase.batch, phase.micro_batching)
    settings = LoaderSettings(phase.length, masking, *batching, recipe.train.seed, str(index), phase.batch_warmup)
    plan_set = PlanSet(length=phase.length, document_range=phase.document_range)
    loader = open_loader(examples, plan_set, settings, vocab)
    most = masking.most(phase.length)
    case = vocab.counts["lower_case"], vocab.counts["strip_accents"]
    rate, seed, passes = masking.rate_at(0), recipe.examples.seed, recipe.examples.passes
    name = _corpus_name(recipe.corpus)
    folder = target.format.set_folder(Provenance(name, plan_set.name, *case, phase.length, most, rate, seed, passes))
    heldout_loader = open_heldout(examples, phase.length, most, masking.rate_at(0), heldout)
    return ExportSet(folder, name, loader, heldout_loader)
