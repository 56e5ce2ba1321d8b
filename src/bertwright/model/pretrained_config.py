"""Reads the folder of a network trained before, to start from or to learn from.

The folder is a finished `train` or `export` folder of this project, or one that transformers wrote. Only configurations
and the headers of weight files are read: does not import torch, so that checking a recipe stays fast.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import product, zip_longest
from pathlib import Path
from typing import Any

from bertwright.core.artifact import MANIFEST, Artifact, open_artifact
from bertwright.core.errors import ArtifactError, RecipeError
from bertwright.core.files import sha256, sha256_of
from bertwright.model.config import GOOGLE_CONFIG, NetworkConfig, read_network_config, read_stock_config, stock_network
from bertwright.model.config_file import read_config_file
from bertwright.model.family import Head, Labels, TensorShapes
from bertwright.model.importers.foreign import foreign_tensors
from bertwright.model.importers.members import find_weights, open_weights
from bertwright.model.importers.safetensors_files import WEIGHTS, SafetensorsWeights
from bertwright.model.importers.weights import Stored, Weights, quantised
from bertwright.model.interop.names import TASKS, Names, head_in, labels_in, task_in
from bertwright.model.interop.peer import names_of
from bertwright.vocab.config import DEFAULT_LONGEST_WORD, LONGEST_WORD, VocabConfig
from bertwright.vocab.entries import TextSettings, entries_file, entries_of, text_settings

_GIVE = (
    f"give a finished train folder, or a folder in the format of transformers (config.json, {WEIGHTS} or "
    "pytorch_model.bin, and vocab.txt or tokenizer.json)"
)
_TOKEN = ".embeddings.token.weight"
_PLACES = {"train": "model", "export": "hf"}
"""The folder of the model in the artifact of a stage."""


@dataclass(frozen=True)
class Pretrained:
    """A folder that holds a network trained before, with its vocabulary."""

    path: Path
    """As given in the recipe: a folder, or a file of weights."""
    folder: Path
    """The folder that contains the configuration and the vocabulary, and the weights if no file was given."""
    network: NetworkConfig
    artifact: Artifact | None
    """The artifact, if the folder is one; None for a folder saved by transformers."""

    @property
    def stock(self) -> bool:
        """Whether tensors and configuration use the names of transformers."""
        return self.artifact is None or self.artifact.manifest["stage"] == "export"

    @property
    def task(self) -> str:
        """The task it was trained for, as transformers' classes name it ("SequenceClassification"); "" for
        pre-training and for vectors."""
        if not self.stock:
            return "" if self.network.predicts_tokens else TASKS.get(self.network.head, "")
        return task_in(self.settings)

    @property
    def other_task(self) -> str:
        """Why a pre-training neither continues it nor learns from it, if it was trained for another task; else ""."""
        if not self.task:
            return ""
        what = "a classifier" if self.task == TASKS["sequence"] else f"a network for another task ({self.task})"
        return (
            f"{self.path} is {what}, without the head that predicts masked tokens; give the folder of a pre-training, "
            "such as the one that it started from"
        )

    @property
    def lacks_head(self) -> str:
        """Why nothing can learn from its predictions, if its head for masked tokens was not saved; else ""."""
        if "mlm.transform.weight" in self.tensors:
            return ""
        return f"{self.path} was saved without the head that predicts masked tokens; save the network with that head"

    @property
    def labels(self) -> Labels:
        """What it predicts, if it is a classifier."""
        if not self.stock:
            return self.network.labels
        return labels_in(self.settings, self.head, self.tensors.get("classification.classifier.weight", (0,))[0])

    @property
    def head(self) -> Head:
        """What its classifier predicts, if it has one."""
        return head_in(self.settings, self.task) if self.stock else self.network.head

    @property
    def other_pooling(self) -> str:
        """Why its classifier cannot be used, if it reads another vector than the state of [CLS]; else ""."""
        pooling = self.settings.get("classifier_pooling", "cls") if self.stock else "cls"
        if pooling == "cls" or self.network.family != "modern" or self.head not in ("sequence", "several", "choice"):
            return ""
        return (
            f"the classifier of {self.path} reads the {pooling} of all tokens (classifier_pooling in config.json), and "
            "classifiers here the state of [CLS]; run it with transformers, or start a fine-tuning of your own from it"
        )

    @property
    def entries_file(self) -> Path:
        """The file with its vocabulary."""
        file = entries_file(self.folder)
        assert file is not None, "`read_pretrained` accepts no folder without one"
        return file

    @property
    def entries(self) -> tuple[str, ...]:
        """Its vocabulary. Raises `DataError` if it is not one of WordPiece."""
        return tuple(entries_of(self.entries_file))

    @property
    def text_settings(self) -> TextSettings | None:
        """The text settings of its tokenizer; None if a folder in the format of transformers states none."""
        if self.stock:
            return text_settings(self.folder)
        # A `train` folder records only a hash, over the entries and one of these settings.
        assert self.artifact is not None
        recorded, entries = self.artifact.counts["vocabulary"], self.entries
        for case in product((False, True), (False, True), (LONGEST_WORD, DEFAULT_LONGEST_WORD)):
            settings = TextSettings(*case)
            if VocabConfig(file=self.entries_file, **settings._asdict()).hash_of(entries) == recorded:
                return settings
        return None

    @property
    def content(self) -> str:
        """The SHA-256 of its content: the artifact's fingerprint, or the hash of the files that are read."""
        return self.artifact.fingerprint if self.artifact else content_of(self.path)

    @property
    def names(self) -> Names:
        """The names of its tensors in files of transformers, and here."""
        return names_of(self.network, self.task)

    @property
    def source(self) -> Path:
        """Where its weights are: a folder, or the file that was given."""
        return self.folder if self.artifact else self.path

    @cached_property
    def weights(self) -> Weights:
        """Its weight files."""
        return open_weights(self.source)

    @property
    def config_file(self) -> Path | None:
        """The file with its configuration; None if its weights have it."""
        return config_file(self.folder)

    @cached_property
    def settings(self) -> Mapping[str, Any]:
        """Its configuration, as its files have it."""
        return _settings(self.folder, self.weights)

    @cached_property
    def stored(self) -> Mapping[str, Stored]:
        """The tensors of its weight files, as `Weights.stored`. Raises `ArtifactError` as that does, and if they are
        those of a network that is known, but of no family here."""
        if foreign := foreign_tensors(self.weights.stored):
            raise ArtifactError(f"{self.path} holds {foreign}")
        return self.weights.stored

    @cached_property
    def tensors(self) -> TensorShapes:
        """The shapes of its tensors, under this project's names. Raises `ArtifactError` as `stored`, and if one holds
        codes of a quantised network."""
        if not self.stock:
            return self.network.tensors
        names = {theirs: ours for theirs, ours in self.names.our_names(self.stored).items() if ours is not None}
        if fault := next(filter(None, (quantised(self.stored[theirs]) for theirs in names)), ""):
            raise ArtifactError(f"{self.path}: {fault}")
        return {ours: self.stored[theirs].shape for theirs, ours in names.items()}

    @property
    def unknown(self) -> list[str]:
        """The names of tensors in its weight files that belong to heads which no network of this project has."""
        names = self.names.our_names(self.stored) if self.stock else {}
        return [theirs for theirs, ours in names.items() if ours is None]


def read_pretrained(path: Path) -> Pretrained:
    """The network in `path`, of whichever kind the folder is; raises `RecipeError` if it has none."""
    if (path / MANIFEST).is_file():
        artifact = open_artifact(path)
        stage = str(artifact.manifest["stage"])
        if stage not in _PLACES:
            raise RecipeError(f"{path} was made by the stage {stage!r}; {_GIVE}")
        folder = path / _PLACES[stage]
        config = folder / "config.json"
        read = read_network_config if stage == "train" else read_stock_config
        return Pretrained(path, folder, read(config), artifact)
    if missing := missing_of(path):
        raise RecipeError(_no_network(path, missing))
    weights, folder = open_weights(path), folder_of(path)
    network = stock_network(_settings(folder, weights), config_file(folder) or path)
    return Pretrained(path, folder, _with_rows(network, weights), None)


def find_pretrained(path: Path | str) -> Pretrained:
    """The network in `path`; of a run folder, the one in its finished training."""
    path = Path(path)
    if not (path / "recipe.toml").is_file():
        return read_pretrained(path)
    if not (path / "train" / MANIFEST).is_file():
        raise ArtifactError(
            f"the training in {path} is not finished. Finish it with `bertwright run {path}`, or export its newest "
            f"checkpoint with `bertwright export {path}` and load the folder that this names."
        )
    return read_pretrained(path / "train")


def folder_of(path: Path) -> Path:
    """The folder of a file of weights, or the folder that `path` is."""
    return path if path.is_dir() else path.parent


def config_file(folder: Path) -> Path | None:
    """The configuration of the network in a folder; None if it has none."""
    return next((folder / name for name in ("config.json", GOOGLE_CONFIG) if (folder / name).is_file()), None)


def missing_of(path: Path) -> list[str]:
    """What a folder, or a file of weights with its folder, lacks to be that of a network."""
    weights, folder = find_weights(path), folder_of(path)
    has_config = config_file(folder) is not None or (weights is not None and weights.config is not None)
    missing = [] if has_config else ["config.json"]
    if weights is None:
        missing.append(WEIGHTS)
    return missing if entries_file(folder) else [*missing, "vocab.txt or tokenizer.json"]


def check_vocabulary(given: Pretrained, vocab: Artifact, key: str, remedy: str = "") -> None:
    """Raise `ArtifactError`, naming both and another `remedy`, if the network given by `key` was not trained with the
    vocabulary `vocab`."""
    if given.stock or given.artifact is None:
        difference = other_vocabulary(given, vocabulary_of(vocab))
    else:
        theirs, ours = str(given.artifact.counts["vocabulary"]), str(vocab.counts["vocabulary"])
        difference = "" if theirs == ours else f"({theirs[:12]} instead of {ours[:12]})"
    if difference:
        raise ArtifactError(f"{key} {given.path} {other_words(given, f'{vocab.path}', difference, remedy)}.")


def vocabulary_of(vocab: Artifact) -> VocabConfig:
    """The vocabulary of an artifact, as a recipe would give it."""
    return VocabConfig(file=vocab.file("vocab.txt"), **TextSettings.recorded(vocab.counts)._asdict())


def other_vocabulary(given: Pretrained, vocab: VocabConfig) -> str:
    """A description in parentheses of how a network's vocabulary differs from `vocab.file` with its text settings; ""
    if it does not.

    Compares the entries, and the text settings if they are known. Raises `DataError` if a file cannot be read.
    """
    assert vocab.file is not None
    entries, settings = entries_of(vocab.file), TextSettings.of(vocab)
    for number, (theirs, ours) in enumerate(zip_longest(given.entries, entries)):
        if theirs != ours:
            sizes = f"{len(given.entries):,} entries there, {len(entries):,} here"
            there, here = ("absent" if entry is None else repr(entry) for entry in (theirs, ours))
            return f"({sizes}; entry {number:,} is {there} there and {here} here)"
    theirs = given.text_settings
    if theirs == settings or (theirs is None and given.stock):
        return ""
    return f"({theirs or 'other text settings'} there, {settings} here)"


def other_words(given: Pretrained, vocabulary: str, difference: str, remedy: str = "") -> str:
    """The message for a network whose vocabulary differs from the one called `vocabulary`; `remedy` is one more way to
    go on."""
    return (
        f"has another vocabulary than {vocabulary} {difference}: its token ids belong to other words. "
        f"{own_vocabulary(given)}, or give another folder{remedy}"
    )


NEW_ROWS = ", or keep this vocabulary, with rows made of that network's (train.init_embeddings=pieces)"
"""How a network to start from may have another vocabulary."""


def own_vocabulary(given: Pretrained) -> str:
    """What to set for the vocabulary of a network."""
    settings = given.text_settings or "with the text settings it was made with"
    return f"Set vocab.file={given.entries_file} {settings}"


def content_of(path: Path) -> str:
    """The SHA-256 over the files that are read of a network which another program saved."""
    folder = folder_of(path)
    beside = [file for file in (config_file(folder), entries_file(folder)) if file is not None]
    return sha256_of({file.name: _hash(file, *_stamp(file)) for file in [*open_weights(path).files, *beside]})


def _settings(folder: Path, weights: Weights) -> Mapping[str, Any]:
    if (file := config_file(folder)) is not None:
        return read_config_file(file)
    return weights.config or {}


def _with_rows(network: NetworkConfig, weights: Weights) -> NetworkConfig:
    """The network with the rows that its embedding has, if those are more than its configuration says: NVIDIA's and
    Google's programs pad the vocabulary themselves."""
    if isinstance(weights, SafetensorsWeights):
        return network  # transformers, which writes them, would not read such a folder
    named = names_of(network, "").our_names(weights.stored)
    rows = next((weights.stored[name].shape for name, ours in named.items() if ours == f"{network.family}{_TOKEN}"), ())
    return network.model_copy(update={"vocab_size": rows[0]}) if rows and rows[0] > network.vocab_size else network


def _no_network(path: Path, missing: list[str]) -> str:
    weights, folder = find_weights(path), folder_of(path)
    if weights is None and not path.is_dir():
        download = "" if path.exists() else ". Nothing is downloaded: save a model of Hugging Face with save_pretrained"
        what = "no file of weights that can be read" if path.exists() else "not a folder"
        return f"{path} is {what}; {_GIVE}{download}"
    if (path / "recipe.toml").is_file():
        return f"{path} is a run folder; give its {path / 'train'}, once it is finished"
    if weights is not None and path != folder:
        return (
            f"{path} has weights, but there is no {' and no '.join(missing)} beside it. Copy those of that network "
            f"into {folder}, or give them to bertwright import {path} --out DIR --config FILE --vocab FILE."
        )
    if weights is not None:
        return f"{path} has no {' and no '.join(missing)}; {_GIVE}"
    others = next((each.name for end in ("h5", "msgpack", "ot") for each in path.glob(f"*.{end}")), "")
    if others:
        text = f"{path} has its weights in {others}, which is never read; load the folder with transformers and save"
        return f"{text} it with save_pretrained, which writes {WEIGHTS}"
    return f"{path} has no {' and no '.join(missing)}; {_GIVE}"


def _stamp(path: Path) -> tuple[int, int]:
    about = path.stat()
    return about.st_size, about.st_mtime_ns


@cache
def _hash(path: Path, size: int, changed: int) -> str:
    """Cached until size or modification time change, because a training's identity is computed at each checkpoint."""
    return sha256(path)
