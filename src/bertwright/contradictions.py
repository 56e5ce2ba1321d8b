"""Contradictions between sections of a recipe, each as a key and a sentence; `Recipe.check` asks for all of them.

A section by itself is judged by its own validators. Here is what several must agree on, and what they name on disk.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bertwright.core.artifact import MANIFEST, open_artifact
from bertwright.core.errors import ArtifactError
from bertwright.examples.config import PAIRS, ExamplesConfig
from bertwright.model.config import ModelConfig
from bertwright.train.config import TrainConfig
from bertwright.vocab.config import VocabConfig

Mistake = tuple[str, str]
"""A dotted key and what is wrong with its value."""


def missing_without_corpus(vocab: VocabConfig, train: TrainConfig) -> Iterator[Mistake]:
    """What only a corpus can give must be given otherwise where there is none."""
    if vocab.file is None:
        text = "there is no [corpus] to learn a vocabulary from"
        yield "vocab.file", f"{text}; give the vocab.txt that the data was made with, or write a [corpus]"
    for i, phase in enumerate(train.phases):
        if phase.data is None:
            text = "there is no [corpus] to make examples of"
            yield f"train.phases.{i}.data", f"{text}; give files of examples, or write a [corpus]"
        elif (phase.data / MANIFEST).is_file():
            text = f"{phase.data} is a folder of ours, and there is no [corpus] with the documents it holds out"
            yield f"train.phases.{i}.data", f"{text}; write the [corpus], or give files of examples (convert)"


def wrong_lengths(train: TrainConfig, scored: int, positions: int) -> Iterator[Mistake]:
    """Lengths beyond the model's `positions`, and one to be `scored` (0: that of the last phase) that no phase has."""
    trained = sorted({p.length for p in train.phases})
    if scored and scored not in trained:
        yield "evaluate.length", f"{scored} is no phase's length, so nothing of it is held out; give one of {trained}"
    lengths = {f"train.phases.{i}.length": p.length for i, p in enumerate(train.phases)}
    for key, length in (lengths | {"evaluate.length": scored}).items():
        if length > positions:
            text = f"{length} is longer than the model's {positions} positions"
            yield key, f"{text}; shorten it or raise model.max_positions"


def pairs_unseen(model: ModelConfig, examples: ExamplesConfig) -> Iterator[Mistake]:
    """Examples of pairs for a family of networks that does not tell their segments apart."""
    if examples.pairs and not model.takes_pairs:
        text = f"{model.kind} has no segments and no next-sentence head, but examples.plan={examples.plan} makes pairs"
        yield "model.kind", f"{text}; set examples.plan=full-sentences or doc-sentences, or model.kind=bert"


def too_many_ranks(train: TrainConfig, ranks: int) -> Iterator[Mistake]:
    """A global batch that does not give every rank a micro-batch."""
    for i, phase in enumerate(train.phases):
        if phase.batch_warmup and phase.batch_warmup[0][1] < ranks:
            text = f"starts with {phase.batch_warmup[0][1]}, fewer than {ranks} ranks; raise it or use fewer ranks"
            yield f"train.phases.{i}.batch_warmup", text
        micro_batch = 0 if phase.micro_batch == "auto" else phase.micro_batch
        share = max(micro_batch, 1) * ranks
        if phase.batch < share:
            what = f"micro_batch {micro_batch} x {ranks} ranks" if micro_batch else f"{ranks} ranks"
            text = f"{phase.batch} is smaller than {what} = {share}; raise it or use fewer ranks"
            yield f"train.phases.{i}.batch", text


def wrong_folders(train: TrainConfig, plan: str) -> Iterator[Mistake]:
    """What training starts from must be finished, of the right stage, and made for the same task (`examples.plan`)."""
    if train.init_from is not None and (wrong := _wrong_folder(train.init_from, "train", "checkpoint")):
        yield "train.init_from", wrong
    for i, phase in enumerate(train.phases):
        key = f"train.phases.{i}.data"
        if phase.data is None:
            continue
        if not phase.data.exists():
            yield key, f"{phase.data} does not exist; give an examples folder, or files of examples"
        elif (phase.data / "recipe.toml").is_file():
            examples = phase.data / "examples"
            finished = "" if (examples / MANIFEST).is_file() else ", once it is finished"
            yield key, f"{phase.data} is a run folder; give its {examples}{finished}"
        elif not (phase.data / MANIFEST).is_file():
            if phase.document_range != (0.0, 1.0):
                text = f"{list(phase.document_range)} is a share of documents, which {phase.data} does not know"
                yield f"train.phases.{i}.document_range", f"{text}; leave it out"
        elif wrong := _wrong_folder(phase.data, "examples"):
            yield key, wrong
        elif phase.quarantine:
            text = f"{phase.data} is an examples folder, whose files are checked by their hashes; leave it out"
            yield f"train.phases.{i}.quarantine", text
        # Only pairs have labels: the network has a next-sentence head for all phases or for none.
        elif (other := _plan_of(phase.data)) != plan and {other, plan} & set(PAIRS):
            yield key, f"{phase.data} was made with examples.plan={other}, here it is {plan}; make both alike"


def _wrong_folder(path: Path, *stages: str) -> str:
    """Why `path` is not the finished folder of one of `stages`; "" if it is."""
    if not (path / MANIFEST).exists() and (path / "config.json").is_file():
        wanted = " or ".join(stages)
        return (
            f"{path} is a folder of Hugging Face, whose weights are not read. Give a folder of {wanted} of a run; "
            f"model.config={path / 'config.json'} takes its architecture"
        )
    try:
        stage = open_artifact(path).manifest["stage"]
    except ArtifactError as error:
        return str(error)
    return "" if stage in stages else f"{path} was made by the stage {stage!r}; give a folder of {' or '.join(stages)}"


def _plan_of(examples: Path) -> str:
    return str(open_artifact(examples).manifest["config"]["examples"]["plan"])
