"""Contradictions between a recipe and the folders of examples that training reads; `Recipe.check` runs these."""

from __future__ import annotations

from collections.abc import Container, Iterator
from pathlib import Path

from bertwright.contradictions.sections import Mistake
from bertwright.core.artifact import MANIFEST, open_artifact
from bertwright.core.errors import ArtifactError, DataError
from bertwright.examples.config import PAIRS, PlanSet
from bertwright.examples.labelled.config import missing_glue
from bertwright.train.config import TrainConfig
from bertwright.train.settings.phase_config import PhaseConfig
from bertwright.vocab.config import VocabConfig


def wrong_folders(train: TrainConfig, plan: str, vocab: VocabConfig, unread: Container[str] = ()) -> Iterator[Mistake]:
    """Check that training reads finished folders of the right stage, task (`examples.plan`), length and vocabulary.
    Data of a phase whose key is in `unread` need not exist."""
    for i, phase in enumerate(train.phases):
        key = f"train.phases.{i}.data"
        if phase.data is None:
            continue
        if not phase.data.exists() and key not in unread:
            missing = f"{phase.data} does not exist; give an examples folder, or files of examples"
            yield key, missing_glue(phase.data) or missing
        elif (phase.data / "recipe.toml").is_file():
            # The likeliest mistake is to name the run instead of its examples.
            examples = phase.data / "examples"
            finished = "" if (examples / MANIFEST).is_file() else ", once it is finished"
            yield key, f"{phase.data} is a run folder; give its {examples}{finished}"
        elif not (phase.data / MANIFEST).is_file():
            if phase.document_range != (0.0, 1.0):
                text = (
                    f"{list(phase.document_range)} is a share of documents, but {phase.data} does not contain documents"
                )
                yield f"train.phases.{i}.document_range", f"{text}; leave it out"
        elif wrong := wrong_folder(phase.data, "examples") or _misfit(phase.data, phase, vocab):
            yield key, wrong
        elif phase.quarantine:
            text = (
                f"{phase.data} is an examples folder, and its files are already checked by their hashes; leave it out"
            )
            yield f"train.phases.{i}.quarantine", text
        # Only pairs have labels: the network has a next-sentence head for all phases or for none.
        elif (other := _plan_of(phase.data)) != plan and {other, plan} & set(PAIRS):
            yield key, f"{phase.data} was made with examples.plan={other}, but this recipe has {plan}; use the same"


def wrong_folder(path: Path, stage: str) -> str:
    """Return why `path` is not the finished folder of a stage; "" if it is."""
    try:
        made_by = open_artifact(path).manifest["stage"]
    except ArtifactError as error:
        return str(error)
    return "" if made_by == stage else f"{path} was made by the stage {made_by!r}; give a folder of {stage}"


def _misfit(examples: Path, phase: PhaseConfig, vocab: VocabConfig) -> str:
    """Return why an examples folder has no examples for the phase; "" if it has."""
    artifact, wanted = open_artifact(examples), PlanSet(length=phase.length, document_range=phase.document_range)
    plans = [Path(name).stem for name in artifact.names("plans/train/") if name.endswith(".json")]
    if wanted.name in plans:
        return _other_vocabulary(examples, vocab.file, vocab) if vocab.file else ""
    if artifact.names("labelled/"):
        return f"{examples} has labelled texts, but no examples for pre-training; give the examples of another run"
    if not plans:
        return (
            f"{examples} was made without a corpus, so it has only the examples of other files; give those files, or "
            "the examples folder of a run with a corpus"
        )
    return (
        f"{examples} has examples of {', '.join(plans)} (length-document_range), but this phase needs {wanted.name}; "
        "give it a length and a document_range that are there, or make that run with a phase like this one"
    )


def _other_vocabulary(examples: Path, file: Path, vocab: VocabConfig) -> str:
    """Return why the ids of an examples folder are not those of the given `vocab.file`; "" if they are."""
    from bertwright.vocab.entries import entries_of

    try:
        if open_artifact(examples).counts["vocabulary"] == vocab.hash_of(entries_of(file)):
            return ""
    except DataError:
        return ""  # reported with the size of the vocabulary
    theirs = examples.parent / "vocab" / "vocab.txt"
    return (
        f"{examples} was made with another vocabulary than {file} with lower_case and strip_accents as they are here; "
        f"set vocab.file={theirs if theirs.is_file() else 'its vocab.txt'} and the text settings it was made with"
    )


def _plan_of(examples: Path) -> str:
    return str(open_artifact(examples).manifest["config"]["examples"]["plan"])
