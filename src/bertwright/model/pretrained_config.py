"""Reads the folder of a network trained before, to start from or to learn from.

The folder is a finished `train` or `export` folder of this project, or one that transformers wrote. Only configurations
and the headers of weight files are read: does not import torch, so that checking a recipe stays fast.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import zip_longest
from pathlib import Path

from bertwright.core.artifact import CONVERT, MANIFEST, Artifact, is_tensorflow_checkpoint, open_artifact
from bertwright.core.errors import ArtifactError, RecipeError
from bertwright.core.files import sha256, sha256_of
from bertwright.model.config import NetworkConfig, read_network_config, read_stock_config
from bertwright.model.config_file import read_config_file
from bertwright.model.family import ANSWERS, Head, Labels, TensorShapes
from bertwright.model.importers.members import find_weights, open_weights
from bertwright.model.importers.safetensors_files import WEIGHTS
from bertwright.model.importers.weights import Stored, Weights
from bertwright.model.interop.names import SEVERAL, TASKS, Names
from bertwright.model.interop.peer import names_of
from bertwright.vocab.config import VocabConfig
from bertwright.vocab.entries import TextSettings, entries_file, entries_of, text_settings

_GIVE = (
    f"give a finished train folder, or a folder in the format of transformers (config.json, {WEIGHTS}, and vocab.txt "
    "or tokenizer.json)"
)
_PLACES = {"train": "model", "export": "hf"}
"""The folder of the model in the artifact of a stage."""
_TASK = re.compile(rf"For({'|'.join(TASKS.values())})$")
"""Ends of the names of transformers' classes for tasks other than pre-training."""


@dataclass(frozen=True)
class Pretrained:
    """A folder that holds a network trained before, with its vocabulary."""

    path: Path
    """As given in the recipe."""
    folder: Path
    """The folder that contains config.json, the weights and the vocabulary."""
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
        pre-training."""
        if not self.stock:
            return "" if self.network.predicts_tokens else TASKS[self.network.head]
        names = read_config_file(self.folder / "config.json").get("architectures")
        found = (_TASK.search(str(name)) for name in names) if isinstance(names, list) else iter(())
        return next((match[1] for match in found if match), "")

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
        if self.head in ANSWERS:
            return ANSWERS[self.head]
        rows = self.tensors.get("classification.classifier.weight", (0,))[0]
        names = read_config_file(self.folder / "config.json").get("id2label") or {}
        return tuple(str(names.get(str(number), f"LABEL_{number}")) for number in range(rows))

    @property
    def head(self) -> Head:
        """What its classifier predicts, if it has one."""
        if not self.stock:
            return self.network.head
        if read_config_file(self.folder / "config.json").get("problem_type") == SEVERAL:
            return "several"
        return next((head for head, task in TASKS.items() if task == self.task), "sequence")

    @property
    def other_pooling(self) -> str:
        """Why its classifier cannot be used, if it reads another vector than the state of [CLS]; else ""."""
        pooling = (
            read_config_file(self.folder / "config.json").get("classifier_pooling", "cls") if self.stock else "cls"
        )
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
        for settings in map(TextSettings, (False, True, False, True), (False, False, True, True)):
            if VocabConfig(file=self.entries_file, **settings._asdict()).hash_of(entries) == recorded:
                return settings
        return None

    @property
    def content(self) -> str:
        """The SHA-256 of its content: the artifact's fingerprint, or the hash of the files that are read."""
        return self.artifact.fingerprint if self.artifact else content_of(self.folder)

    @property
    def names(self) -> Names:
        """The names of its tensors in files of transformers, and here."""
        return names_of(self.network, self.task)

    @cached_property
    def weights(self) -> Weights:
        """Its weight files."""
        return open_weights(self.folder)

    @property
    def stored(self) -> Mapping[str, Stored]:
        """The tensors of its weight files, as `Weights.stored`."""
        return self.weights.stored

    @cached_property
    def tensors(self) -> TensorShapes:
        """The shapes of its tensors, under this project's names."""
        if not self.stock:
            return self.network.tensors
        names = self.names.our_names(self.stored)
        return {ours: self.stored[theirs].shape for theirs, ours in names.items() if ours is not None}

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
        network = read_network_config(config) if stage == "train" else read_stock_config(config)
        return Pretrained(path, folder, network, artifact)
    if missing := missing_of(path):
        raise RecipeError(_no_network(path, missing))
    return Pretrained(path, path, read_stock_config(path / "config.json"), None)


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


def missing_of(path: Path) -> list[str]:
    """What a folder lacks to be that of a network in the format of transformers."""
    missing = [] if (path / "config.json").is_file() else ["config.json"]
    if find_weights(path) is None:
        missing.append(WEIGHTS)
    return missing if entries_file(path) else [*missing, "vocab.txt or tokenizer.json"]


def check_vocabulary(given: Pretrained, vocab: Artifact, key: str) -> None:
    """Raise `ArtifactError`, naming both, if the network given by `key` was not trained with the vocabulary `vocab`."""
    if given.stock or given.artifact is None:
        settings = {name: vocab.counts[name] for name in ("lower_case", "strip_accents")}
        difference = other_vocabulary(given, VocabConfig(file=vocab.file("vocab.txt"), **settings))
    else:
        theirs, ours = str(given.artifact.counts["vocabulary"]), str(vocab.counts["vocabulary"])
        difference = "" if theirs == ours else f"({theirs[:12]} instead of {ours[:12]})"
    if difference:
        raise ArtifactError(f"{key} {given.path} {other_words(given, f'{vocab.path}', difference)}.")


def other_vocabulary(given: Pretrained, vocab: VocabConfig) -> str:
    """A description in parentheses of how a network's vocabulary differs from `vocab.file` with its text settings; ""
    if it does not.

    Compares the entries, and the text settings if they are known. Raises `DataError` if a file cannot be read.
    """
    assert vocab.file is not None
    entries, settings = entries_of(vocab.file), TextSettings(vocab.lower_case, vocab.strip_accents)
    for number, (theirs, ours) in enumerate(zip_longest(given.entries, entries)):
        if theirs != ours:
            sizes = f"{len(given.entries):,} entries there, {len(entries):,} here"
            there, here = ("absent" if entry is None else repr(entry) for entry in (theirs, ours))
            return f"({sizes}; entry {number:,} is {there} there and {here} here)"
    theirs = given.text_settings
    if theirs == settings or (theirs is None and given.stock):
        return ""
    return f"({theirs or 'other text settings'} there, {settings} here)"


def other_words(given: Pretrained, vocabulary: str, difference: str) -> str:
    """The message for a network whose vocabulary differs from the one called `vocabulary`."""
    return (
        f"has another vocabulary than {vocabulary} {difference}: its token ids belong to other words. "
        f"{own_vocabulary(given)}, or give another folder"
    )


def own_vocabulary(given: Pretrained) -> str:
    """What to set for the vocabulary of a network."""
    settings = given.text_settings or "with the text settings it was made with"
    return f"Set vocab.file={given.entries_file} {settings}"


def content_of(folder: Path) -> str:
    """The SHA-256 over the files that are read of a folder saved by transformers."""
    files = [folder / "config.json", *open_weights(folder).files, entries_file(folder) or folder]
    return sha256_of({path.name: _hash(path, *_stamp(path)) for path in files})


def _no_network(path: Path, missing: list[str]) -> str:
    if is_tensorflow_checkpoint(path):
        return f"{path} is a TensorFlow checkpoint. {CONVERT}"
    if not path.is_dir():
        download = "" if path.exists() else ". Nothing is downloaded: save a model of Hugging Face with save_pretrained"
        return f"{path} is not a folder; {_GIVE}{download}"
    if (path / "recipe.toml").is_file():
        return f"{path} is a run folder; give its {path / 'train'}, once it is finished"
    if WEIGHTS not in missing:
        return f"{path} has no {' and no '.join(missing)}; {_GIVE}"
    pickle = path / "pytorch_model.bin"
    if pickle.is_file():
        code = (
            "import torch, safetensors.torch as s; s.save_file({n: t.clone() for n, t in torch.load("
            f"{str(pickle)!r}, weights_only=True).items()}}, {str(path / WEIGHTS)!r})"
        )
        text = f"{path} has its weights in {pickle.name}, a pickle, and pickles are never read; convert it with"
        return f"{text} python -c {shlex.quote(code)}"
    others = next(
        (each.name for end in ("bin", "h5", "msgpack", "index", "ckpt") for each in path.glob(f"*.{end}")), ""
    )
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
