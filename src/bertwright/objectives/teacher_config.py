"""Reads a teacher's folder: its network configuration, vocabulary and content hash. Does not import torch, so that
checking a recipe stays fast."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import zip_longest
from pathlib import Path

from bertwright.core.artifact import MANIFEST, Artifact, open_artifact
from bertwright.core.errors import ArtifactError, RecipeError
from bertwright.core.files import read_bytes, sha256, sha256_of
from bertwright.model.config import NetworkConfig, read_network_config
from bertwright.model.config_file import read_config_file
from bertwright.model.stock_config import read_stock_config
from bertwright.objectives.config import DistillationConfig

FILES = ("config.json", "model.safetensors", "vocab.txt")
"""The files that are read from a teacher's folder."""
_MOST = 256 * 2**20
"""Maximum size of a vocabulary (bytes)."""
_GIVE = f"give a finished train folder, or a folder in the format of transformers ({', '.join(FILES)})"
NO_HEAD = (
    "is a classifier, without the head that predicts masked tokens; give the folder of a pre-training, such as the one "
    "that it started from"
)
_PLACES = {"train": "model", "export": "hf"}
"""The folder of the model in the artifact of a stage."""


@dataclass(frozen=True)
class Teacher:
    """A folder that holds a network to learn from."""

    path: Path
    """As given in the recipe."""
    folder: Path
    """The folder that contains `FILES`."""
    network: NetworkConfig
    artifact: Artifact | None
    """The artifact, if the folder is one; None for a folder saved by transformers."""

    @property
    def stock(self) -> bool:
        """Whether tensors and configuration use the names of transformers."""
        return self.artifact is None or self.artifact.manifest["stage"] == "export"

    @property
    def is_classifier(self) -> bool:
        """Whether it has a classifier in place of the head that predicts masked tokens."""
        if not self.stock:
            return bool(self.network.labels)
        named = read_config_file(self.folder / "config.json").get("architectures")
        return isinstance(named, list) and any(str(name).endswith("ForSequenceClassification") for name in named)

    @property
    def entries(self) -> tuple[str, ...]:
        """Its vocabulary."""
        return entries_of(self.folder / "vocab.txt")

    @property
    def content(self) -> str:
        """The SHA-256 of its content: the artifact's fingerprint, or the hash of `FILES`."""
        return self.artifact.fingerprint if self.artifact else content_of(self.folder)


def read_teacher(path: Path) -> Teacher:
    """The teacher in `path`, detected from the folder's content; raises `RecipeError` if the folder holds none."""
    if (path / MANIFEST).is_file():
        artifact = open_artifact(path)
        stage = str(artifact.manifest["stage"])
        if stage not in _PLACES:
            raise RecipeError(f"{path} was made by the stage {stage!r}; {_GIVE}")
        folder = path / _PLACES[stage]
        config = folder / "config.json"
        return Teacher(
            path, folder, read_network_config(config) if stage == "train" else read_stock_config(config), artifact
        )
    if missing := missing_of(path):
        raise RecipeError(_no_teacher(path, missing))
    return Teacher(path, path, read_stock_config(path / "config.json"), None)


def missing_of(path: Path) -> list[str]:
    """The members of `FILES` that a folder lacks."""
    return [name for name in FILES if not (path / name).is_file()]


def _no_teacher(path: Path, missing: list[str]) -> str:
    if not path.is_dir():
        return f"{path} is not a folder; {_GIVE}"
    if (path / "recipe.toml").is_file():
        return f"{path} is a run folder; give its {path / 'train'}, once it is finished"
    if missing == ["model.safetensors"] and (path / "pytorch_model.bin").is_file():
        text = f"{path} has its weights in pytorch_model.bin, but pickle files are never read"
        return f"{text}; save them as safetensors (transformers' save_pretrained)"
    return f"{path} has no {' and no '.join(missing)}; {_GIVE}"


def content_of(folder: Path) -> str:
    """The SHA-256 over the `FILES` of a folder saved by transformers."""
    return sha256_of({name: _hash(folder / name, *_stamp(folder / name)) for name in FILES})


def _stamp(path: Path) -> tuple[int, int]:
    about = path.stat()
    return about.st_size, about.st_mtime_ns


@cache
def _hash(path: Path, size: int, changed: int) -> str:
    """Cached until size or modification time change, because a training's identity is computed at each checkpoint."""
    return sha256(path)


def entries_of(vocabulary: Path) -> tuple[str, ...]:
    """The entries of a vocab.txt, one per line, with any line endings."""
    try:
        text = read_bytes(vocabulary, _MOST).decode("utf-8-sig", errors="replace")
    except ValueError as error:
        raise RecipeError(f"{vocabulary} is not a vocabulary: {error}; {_GIVE}") from error
    return tuple(line.removesuffix("\r") for line in text.removesuffix("\n").split("\n"))


def check_teacher(config: DistillationConfig, network: NetworkConfig, lengths: Sequence[int], vocab: Artifact) -> None:
    """Raise `RecipeError` if the teacher is invalid or unsuitable for training `network` on the phases' `lengths`, and
    `ArtifactError` if it was not trained with the vocabulary `vocab`."""
    teacher = read_teacher(config.teacher)
    keys = {f"train.phases.{number}.length": length for number, length in enumerate(lengths)}
    for key, sentence in misfits(config, teacher, network, keys, 2 if network.next_sentence else 1):
        raise RecipeError(f"{key}: {sentence}.")
    check_vocabulary(teacher, vocab)


def check_vocabulary(teacher: Teacher, vocab: Artifact, key: str = "train.objective.teacher") -> None:
    """Raise `ArtifactError`, naming both, if the teacher given by `key` was not trained with the vocabulary `vocab`.

    For a `train` artifact, compares the hashes over entries and text settings; for an export or a folder saved by
    transformers, compares the entries.
    """
    if teacher.stock or teacher.artifact is None:
        difference = other_entries(teacher, entries_of(vocab.file("vocab.txt")))
    else:
        theirs, ours = str(teacher.artifact.counts["vocabulary"]), str(vocab.counts["vocabulary"])
        difference = "" if theirs == ours else f"({theirs[:12]} instead of {ours[:12]})"
    if difference:
        raise ArtifactError(f"{key} {teacher.path} {other_vocabulary(teacher, f'{vocab.path}', difference)}")


def other_entries(teacher: Teacher, entries: tuple[str, ...]) -> str:
    """A description in parentheses of how the teacher's entries differ from `entries`; "" if they are equal."""
    for number, (theirs, ours) in enumerate(zip_longest(teacher.entries, entries)):
        if theirs != ours:
            sizes = f"{len(teacher.entries):,} entries there, {len(entries):,} here"
            there, here = ("absent" if entry is None else repr(entry) for entry in (theirs, ours))
            return f"({sizes}; entry {number:,} is {there} there and {here} here)"
    return ""


def other_vocabulary(teacher: Teacher, vocabulary: str, difference: str) -> str:
    """The message for a teacher whose vocabulary differs from the one called `vocabulary`."""
    return (
        f"has another vocabulary than {vocabulary} {difference}: its token ids belong to other words. Set "
        f"vocab.file={teacher.folder / 'vocab.txt'} with the text settings it was made with, or give another folder."
    )


def misfits(
    config: DistillationConfig, teacher: Teacher, network: NetworkConfig, lengths: Mapping[str, int], segments: int
) -> Iterator[tuple[str, str]]:
    """Yield the recipe keys whose values do not fit this teacher for training `network`, each with a message.

    `lengths` are the sequence lengths that the teacher has to read, by recipe key; `segments` is the number of segments
    per sequence.
    """
    theirs, key = teacher.network, "train.objective"
    if teacher.is_classifier:
        yield f"{key}.teacher", f"{teacher.path} {NO_HEAD}"
        return
    for length_key, length in lengths.items():
        if length > theirs.max_position_embeddings:
            text = f"{length} is longer than the {theirs.max_position_embeddings} positions of {key}.teacher"
            yield length_key, f"{text} {teacher.path}; shorten it, or give a teacher with as many positions"
    if 0 < theirs.segments < segments:
        text = f"{teacher.path} distinguishes {theirs.segments} segment, but sentence pairs have {segments}"
        yield f"{key}.teacher", f"{text}; give another teacher, or set examples.plan=doc-sentences"
    if not config.hidden_weight:
        return
    own, depth = network.num_hidden_layers, theirs.num_hidden_layers
    if theirs.hidden_size != network.hidden_size:
        text = f"the hidden states of {teacher.path} have {theirs.hidden_size} numbers, but those of [model] have"
        remedy = "so their cosine cannot be computed; set hidden_weight=0, or choose a model of the teacher's width"
        yield f"{key}.hidden_weight", f"{text} {network.hidden_size}, {remedy}"
    if config.layers and (len(config.layers) != own or max(config.layers) > depth):
        text = f"{list(config.layers)} must be {own} numbers from 0 to {depth}, one for each layer of [model], each a"
        yield f"{key}.layers", f"{text} layer of train.objective.teacher ({teacher.path}) or 0 for none"
