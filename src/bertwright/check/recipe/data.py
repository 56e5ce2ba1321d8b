"""Check that the data a recipe names exists, and describe it: sources and files of a corpus, data of phases, and a
vocabulary file, which a run reads only after it has made the corpus.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from bertwright.check.verdict import Verdict, error, from_exception, ok, warning
from bertwright.core.addresses import redact_credentials
from bertwright.core.artifact import MANIFEST, Artifact, open_artifact
from bertwright.core.config import result_settings
from bertwright.core.errors import ArtifactError, BertwrightError, DataError
from bertwright.corpus.config import CorpusConfig, SourceConfig
from bertwright.corpus.wikis import wikis
from bertwright.estimate.known_data import BUILT_IN, source_text
from bertwright.examples.config import ExamplesConfig, ImportedData
from bertwright.recipe import Recipe
from bertwright.vocab.config import VocabConfig
from bertwright.vocab.letter_case import different_case

if TYPE_CHECKING:
    from bertwright.formats.detect import FileSet


_SAMPLE_LANGUAGE = "hu"
"""The language that the header of the built-in sample states."""
_OF_WIKIS = ("wikitext", "keep_disambiguation")
"""Settings that apply only to dumps of wikis."""
_RECORDS = 100_000
"""Labelled texts of a file that are read to find mistakes in them; the stage reads all."""


def sources(corpus: CorpusConfig, pending: bool = True) -> tuple[float | None, list[Verdict]]:
    """Return the approximate bytes of text in the sources (None: not all of them are here), and verdicts on them;
    on the language of dumps only if the corpus is `pending`."""
    verdicts: list[Verdict] = []
    total: float | None = 0.0
    for number, source in enumerate(corpus.source):
        key = "corpus.source" if len(corpus.source) == 1 else f"corpus.source.{number}"
        size, verdict = _look(key, source, corpus)
        # A sum without one source would accept a disk that is too small.
        total = None if size is None or total is None else total + size * source.weight
        verdicts.append(verdict)
    verdicts += [*_language(corpus), *_named_files(corpus)]
    if pending and all(verdict.level != "error" for verdict in verdicts):
        verdicts += _input_mistakes(corpus)
    return total, verdicts


def _input_mistakes(corpus: CorpusConfig) -> Iterator[Verdict]:
    """Yield the error with which the stage would end before it extracts anything, such as a dump in another language
    than `corpus.language`."""
    changed = any(getattr(corpus, name) != CorpusConfig.model_fields[name].default for name in _OF_WIKIS)
    wanted = {corpus.language, *corpus.filter.languages}
    # The built-in sample in its own language contradicts nothing, and the check imports much that it does not need.
    if not changed and _SAMPLE_LANGUAGE in wanted and all(source.path in BUILT_IN for source in corpus.source):
        return
    from bertwright.corpus.errors import NoCopyError
    from bertwright.corpus.run import check_inputs

    try:
        check_inputs(corpus)
    except NoCopyError:
        return  # checked when the stage has opened it
    except BertwrightError as cause:
        yield from_exception("corpus", cause)


def general_texts(corpus: CorpusConfig) -> Iterator[Verdict]:
    """Yield a verdict on each text of `evaluate.general`, which are the sources of `corpus`."""
    for number, source in enumerate(corpus.source):
        key = "evaluate.general" if len(corpus.source) == 1 else f"evaluate.general.{number}"
        yield _look(key, source, corpus)[1]


def _look(key: str, source: SourceConfig, corpus: CorpusConfig) -> tuple[float | None, Verdict]:
    try:
        size, what = source_text(source, corpus.cache_dir)
    except BertwrightError as cause:
        return None, from_exception(key, cause)
    if size is None:
        return None, ok(
            key, f"{redact_credentials(source.path)} is on another machine: it is opened when the stage starts"
        )
    return size, ok(key, what)


def _language(corpus: CorpusConfig) -> Iterator[Verdict]:
    others = [code for code in dict.fromkeys(corpus.filter.languages) if code != corpus.language]
    for code, key in ((corpus.language, "corpus.language"), *((code, "corpus.filter.languages") for code in others)):
        if code in wikis():
            yield ok(key, f"{code} is {wikis()[code]}")
        else:
            yield warning(
                key,
                f"{code} is not the code of a Wikipedia known to bertwright: the rules for all languages are used.",
                f"Correct it if it is mistyped (bertwright check --explain {key}).",
            )


def _named_files(corpus: CorpusConfig) -> Iterator[Verdict]:
    """Yield an error for each file or program that the corpus section names and that does not exist."""
    named = {"corpus.wikitext.templates": corpus.wikitext.templates}
    named |= {f"corpus.contamination.{number}": path for number, path in enumerate(corpus.contamination)}
    for key, path in named.items():
        if path is not None and not path.is_file():
            yield error(key, f"{path} is not a file.", "Give the path of a file you may read.", DataError)
    command = corpus.split.command
    if command and shutil.which(command[0]) is None:
        yield error("corpus.split.command", f"there is no program {command[0]!r}.", "Install it, or give its path.")


def imported_data(recipe: Recipe, entries: Sequence[str] | None = None, pending: bool = False) -> Iterator[Verdict]:
    """Yield a verdict on each phase with data in an imported format; without a corpus also on its held-out part.

    `entries` are those of the given vocabulary, if its ids are to be compared with those of the data. `pending`:
    examples are still to be made, so labelled texts are read, too.
    """
    for phase in recipe.train.imported_data():
        if phase.files:
            yield _labelled_texts(phase, recipe, pending)
            continue
        # Imported here: the formats need numpy, which recipes without such data do not.
        from bertwright.formats.imported.phase_files import find, find_tests, list_files

        key = f"{phase.key}.data"
        try:
            data = find(phase)
            # With a corpus, its held-out documents are the test set; imported data must bring its own.
            tests = () if recipe.corpus else find_tests(phase, data)
        except BertwrightError as cause:
            yield from_exception(key, cause)
            continue
        what = f"{'documents of ' if data.documents else ''}{data.kind}"
        number = "" if data.examples is None else f", {data.examples:,} examples"
        length = "" if data.shape.length is None else f", length {data.shape.length}"
        yield ok(key, f"{data.folder}: {what}, {len(data.files):,} files{number}{length}")
        if entries:
            yield from _contents(phase, data, entries, recipe.examples)
        if data.incomplete:
            yield warning(key, f"{data.folder} has {data.incomplete}.", "Download the missing files if you need them.")
        if recipe.corpus is None:
            share = f"examples.heldout={recipe.examples.heldout:g} of them"
            yield ok(key, f"held out: {list_files(phase, tests) if tests else share}")
        unused = [test_set for test_set in data.tests if test_set not in tests]
        if unused or data.unreadable_tests:
            yield ok(key, f"not trained on: {list_files(phase, unused, data.unreadable_tests)}")


def _contents(
    phase: ImportedData, data: FileSet, entries: Sequence[str], examples: ExamplesConfig
) -> Iterator[Verdict]:
    """Yield an error if the first examples are damaged, or do not have the ids of the given vocabulary, and otherwise a
    warning for each thing in some of them that teaches nothing."""
    from bertwright.formats.errors import ShardError
    from bertwright.formats.imported.phase_files import damage_error
    from bertwright.formats.statistics import doubts
    from bertwright.formats.vocabulary_fit import misfit

    key = f"{phase.key}.data"
    try:
        fault = "" if data.documents else misfit(data, entries)
    except ShardError as cause:
        if not phase.quarantine:
            yield from_exception(key, damage_error(phase, cause))
        return
    if fault:
        remedy = "The examples were made with another vocabulary: set vocab.file to theirs."
        yield error(key, f"{fault}.", remedy, DataError)
        return
    read, sentences = doubts(data, entries, examples.pairs)
    unit = "documents" if data.documents else "examples"
    for sentence in sentences:
        yield warning(
            key, f"in {read:,} {unit} that were read, {sentence}.", "Make the files again if this is not intended."
        )


def examples_of_another_run(recipe: Recipe, out: Path, stages: Sequence[str]) -> Iterator[Verdict]:
    """Yield a verdict on each phase of a pending training whose examples another run made: whether their ids are those
    of the vocabulary that is trained in the run folder `out`. A given vocabulary is compared with the recipe's check.
    """
    if "train" not in stages or recipe.vocab.file is not None:
        return
    for number, phase in enumerate(recipe.train.phases):
        if phase.data is None or not (phase.data / MANIFEST).is_file():
            continue
        key = f"train.phases.{number}.data"
        try:
            examples, ours = open_artifact(phase.data, "examples"), trained_vocabulary(recipe, out)
        except BertwrightError as cause:
            yield from_exception(key, cause)
            continue
        file = phase.data.parent / "vocab" / "vocab.txt"
        theirs = file if file.is_file() else "its vocab.txt"
        remedy = f"Set vocab.file={theirs}, with the text settings it was made with."
        if ours is None:
            # Known only once the vocabulary is trained: after the corpus, which may take hours.
            text = f"{phase.data} has ids of another run's vocabulary, and that of this run is not trained yet."
            yield warning(key, text, f"They must be the same. {remedy}")
        elif ours.counts["vocabulary"] != examples.counts["vocabulary"]:
            text = f"{phase.data} was made with another vocabulary than {ours.path}: its ids belong to other words."
            yield error(key, text, remedy, ArtifactError)
        else:
            yield ok(key, f"{phase.data} was made with the vocabulary of this run")


def trained_vocabulary(recipe: Recipe, out: Path) -> Artifact | None:
    """The vocabulary in the run folder, unless it has to be trained, or trained again with other settings."""
    if not (out / "vocab" / MANIFEST).is_file():
        return None
    vocab = open_artifact(out / "vocab", "vocab")
    return vocab if vocab.manifest["config"]["vocab"] == result_settings(recipe.vocab) else None


def _labelled_texts(phase: ImportedData, recipe: Recipe, read: bool) -> Verdict:
    """Return the verdict on the labelled texts of a phase: on the names of files and, with `read`, on the columns and
    labels of their first records."""
    # Imported here, because only recipes with labelled texts need it.
    from bertwright.examples.own_files import count_first, find_files, refuse_empty

    own = phase.files
    assert own is not None
    key = f"{phase.key}.data"
    parts = list[str]()
    try:
        files = find_files(phase.path, own, key)
        if read:
            counts = {file: count_first(own, file, _RECORDS + 1) for file in (*files.train, *files.heldout)}
            train, heldout = (sum(counts[file] for file in group) for group in (files.train, files.heldout))
            # Which texts a share holds out is known only once they are read completely.
            refuse_empty(key, phase.path, own, files, (train, heldout if files.heldout else 1))
            parts = [
                f"; of {file.name}, the first {_RECORDS:,} of about {own.sizes(file).number:,} {own.unit} "
                "were read, the others when the examples are made"
                for file in counts
                if counts[file] > _RECORDS
            ]
    except BertwrightError as cause:
        return from_exception(key, cause)
    held = ", ".join(file.name for file in files.heldout) or f"examples.heldout={recipe.examples.heldout:g} of them"
    names = ", ".join(file.name for file in files.train)
    return ok(key, f"labelled {own.unit} in {names}; held out: {held}{''.join(parts)}")


def _extended(config: VocabConfig, file: Path) -> Verdict:
    """Return the verdict on a vocabulary to add entries to."""
    from bertwright.vocab.extend import room_of
    from bertwright.vocab.load import check_reachable, read_vocabulary

    key = "vocab.extend"
    try:
        entries = read_vocabulary(file)
        check_reachable(entries, config, key, file)
        return ok(key, f"{file} has {len(entries):,} entries; up to {room_of(config, entries):,} are added")
    except BertwrightError as cause:
        return from_exception(key, cause)


def letter_case(vocab: VocabConfig, corpus: CorpusConfig) -> Iterator[Verdict]:
    """Yield a warning if the language has another lower case than the vocabulary."""
    if found := different_case(vocab, corpus.language):
        yield warning("vocab.lower_case", *found)


def given_vocabulary(config: VocabConfig, pending: Sequence[str]) -> tuple[list[str] | None, list[Verdict]]:
    """Return the entries of `vocab.file` (None: none is given, it is unusable, or no pending stage reads it), and the
    verdict on it, or on the vocabulary to extend."""
    if config.extend is not None and "vocab" in pending:
        return None, [_extended(config, config.extend)]
    if config.file is None or not {"vocab", "examples"} & {*pending}:
        return None, []
    # Imported here: it needs numpy and tokenizers, which recipes without a given vocabulary do not.
    from bertwright.vocab.load import check_reachable, read_vocabulary

    try:
        entries = read_vocabulary(config.file)
        check_reachable(entries, config)
    except BertwrightError as cause:
        return None, [from_exception("vocab.file", cause)]
    return entries, [ok("vocab.file", f"{config.file} has {len(entries):,} entries")]
