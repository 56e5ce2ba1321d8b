"""What is known of the network that a training goes on from: its folder, vocabulary, size, and how it was trained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertwright.core.artifact import MANIFEST
from bertwright.core.errors import RecipeError
from bertwright.model.pretrained_config import Pretrained, config_file, find_pretrained
from bertwright.vocab.entries import CONTINUATION, TextSettings

_OF_SIZE = ("size", "dropout", "attention_dropout", "max_positions", "initializer_range", "pad_vocab_to_multiple_of")
"""Keys of `[model]` that a network of a named size is described by."""


@dataclass(frozen=True)
class Start:
    """A network to continue."""

    given: Pretrained
    entries: list[str]
    settings: TextSettings
    guessed: bool
    """Whether the text settings were guessed from the entries, because the folder does not state them."""
    trained: Mapping[str, Any] | None
    """The settings of its training, if it is a training of this project; else None."""
    language: str
    """The language of its texts, if it is known; else ""."""

    @property
    def folder(self) -> Path:
        """The folder for `train.init_from`."""
        return self.given.path

    @property
    def pairs(self) -> bool:
        """Whether it has a next-sentence head."""
        return "nsp.classifier.weight" in self.given.tensors

    @property
    def phase(self) -> Mapping[str, Any]:
        """The settings of the last phase of its training; empty if they are not known."""
        return self.trained["train"]["phases"][-1] if self.trained else {}

    @property
    def peak(self) -> float | None:
        """The peak learning rate of that phase; None if it is not known."""
        return float(self.phase["learning_rate"]) if self.phase else None

    @property
    def optimizer(self) -> str:
        """The optimizer of its training; that of published networks."""
        return str(self.trained["optim"]["kind"]) if self.trained else "adamw"

    @property
    def model(self) -> dict[str, Any]:
        """The keys of `[model]` that describe it."""
        family = self.given.network.family
        kind = {} if family == "bert" else {"kind": family}
        model = self.trained["model"] if self.trained else {}
        if model.get("size"):
            return kind | {key: model[key] for key in _OF_SIZE if model.get(key) not in (None, 1)}
        return kind | {"config": str(_config(self.given))}


def read_start(path: Path) -> Start:
    """The network in a folder: of a run, its training, its export, or one that `train.init_from` takes.

    Raises `RecipeError`, `ArtifactError` or `DataError` if there is none, or none that can learn to predict masked
    tokens: another task, another tokenizer than WordPiece.
    """
    given = find_pretrained(path)
    if given.other_task:
        raise RecipeError(f"--from {given.other_task}.")
    _config(given)
    entries = list(given.entries)
    stated = given.text_settings
    settings = stated or guess_settings(entries)
    artifact = given.artifact
    trained = dict(artifact.manifest["config"]) if artifact and artifact.manifest["stage"] == "train" else None
    return Start(given, entries, settings, stated is None, trained, _language(given))


def _config(given: Pretrained) -> Path:
    """The file with its configuration, which `[model]` names; `RecipeError` if only its weights contain it."""
    found = config_file(given.folder)
    if found is None:
        raise RecipeError(
            f"--from {given.path} has its configuration inside the file of its weights, which a recipe cannot name. "
            f"Make a folder of it first: bertwright import {given.path} --out FOLDER."
        )
    return found


def guess_settings(entries: list[str]) -> TextSettings:
    """The text settings under which the entries can occur: lower case if none has a capital, without accents if none
    has a letter with one."""
    letters = "".join(entry.removeprefix(CONTINUATION) for entry in entries if not entry.startswith("["))
    lower = letters == letters.lower()
    return TextSettings(lower, lower and all(ord(c) < 0xC0 or not c.isalpha() or ord(c) > 0x17F for c in letters))


def _language(given: Pretrained) -> str:
    """The language of the corpus beside a training, or of the texts of an export."""
    if given.artifact is None:
        return ""
    texts = given.artifact.manifest["config"].get("texts", {})
    if given.artifact.manifest["stage"] == "export" and isinstance(texts, Mapping) and texts.get("language"):
        return str(texts["language"])
    corpus = given.path.absolute().parent / "corpus" / MANIFEST
    if not corpus.is_file():
        return ""
    from bertwright.core.artifact import open_artifact

    return str(open_artifact(corpus.parent, "corpus").manifest["config"]["corpus"]["language"])
