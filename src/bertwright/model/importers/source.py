"""What can be imported of the weights of another program: their network, vocabulary and heads, found without torch.

Reads names and shapes alone, so that everything that stands against an import is said before any work.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bertwright.core.artifact import MANIFEST
from bertwright.core.errors import ArtifactError, RecipeError
from bertwright.model.config import GOOGLE_CONFIG, NetworkConfig, stock_network
from bertwright.model.config_file import read_config_file
from bertwright.model.family import TensorShapes, linear
from bertwright.model.importers.foreign import foreign_tensors
from bertwright.model.importers.members import open_weights
from bertwright.model.importers.weights import Weights, quantised
from bertwright.model.interop.names import TASKS, Names, head_in, labels_in, task_in
from bertwright.model.interop.peer import names_of
from bertwright.model.pretrained_config import config_file, folder_of
from bertwright.vocab.entries import FILES, SPECIALS, TextSettings, entries_file, entries_of, text_settings
from bertwright.vocab.load import MOST_UNREACHABLE, read_vocabulary, unreachable

_MULTIPLES = (8, 16, 32, 64, 128, 256, 512, 1024)
"""What programs round the rows of an embedding up to (NVIDIA 8, ModernBERT 64, Megatron 128 per GPU)."""
PARTS = ("encoder", "pooler", "head for masked words", "next-sentence head", "classifier")


@dataclass(frozen=True)
class Given:
    """What the user says of a source that does not say it itself."""

    config: Path | None = None
    vocabulary: Path | None = None
    lower_case: bool | None = None
    """None: the source says it."""


@dataclass(frozen=True)
class Source:
    """The weights of another program, with everything that belongs to them."""

    path: Path
    """As given."""
    folder: Path
    """The folder that the weights lie in."""
    weights: Weights
    config: Path
    """The file of its configuration: one of the weights', if they have it."""
    network: NetworkConfig
    """Its `vocab_size` is the rows that the embedding has, padding included."""
    names: Names
    headless: bool
    """Whether there is an encoder alone, perhaps with a pooler."""
    pooler: bool
    entries: Sequence[str]
    vocabulary: Path
    """The file of the entries."""
    settings: TextSettings
    unknown: Sequence[str]
    """Tensors that no network here has, by their names in the file."""

    @property
    def padding(self) -> int:
        """Rows of the embedding that belong to no entry."""
        return self.network.vocab_size - len(self.entries)

    @property
    def expected(self) -> TensorShapes:
        """The shapes of the tensors to import, by this project's names."""
        return _expected(self.network, self.headless, self.pooler)

    @property
    def unused(self) -> list[str]:
        """The parts that the source has, but that no head of this network reads."""
        found = {
            part_of(ours, self.network.family) for ours in self.names.our_names(self.weights.stored).values() if ours
        }
        return [part for part in PARTS if part in found and not self.tensors_of(part)]

    def tensors_of(self, part: str) -> int:
        """How many tensors of a part are imported."""
        return sum(part_of(name, self.network.family) == part for name in self.expected)


def part_of(name: str, family: str) -> str:
    """The part of a network, one of `PARTS`, that a tensor belongs to, by this project's name of it."""
    if name.startswith(f"{family}.pooler."):
        return "pooler"
    heads = {"mlm": "head for masked words", "nsp": "next-sentence head", "classification": "classifier"}
    return heads.get(name.partition(".")[0], "encoder")


def read_source(path: Path, given: Given = Given()) -> Source:
    """What the weights in a folder, or in a file, are. Reads the headers of files.

    Raises `RecipeError` if something is missing that the user can give, and `ArtifactError` or `DataError` if what is
    there is damaged, does not fit together, or is no network of this project. Unknown tensors are no error here.
    """
    weights, folder = _weights(path)
    file, stated = _config(path, folder, weights, given)
    stored = weights.stored
    if foreign := foreign_tensors(stored):
        raise ArtifactError(f"{path} holds {foreign}")
    task = _task(file, stated, stored)
    network = stock_network({"model_type": "bert", **stated}, file)
    names = names_of(network, task)
    ours = names.our_names(stored)
    if fault := next(filter(None, (quantised(stored[name]) for name, known in ours.items() if known)), ""):
        raise ArtifactError(f"{path}: {fault}.")
    shapes = {known: stored[name].shape for name, known in ours.items() if known is not None}
    if (rows := shapes.get(names.embedding, (0,))[0]) == 0:
        raise ArtifactError(
            f"{path} has no {names.embedding} of {network.title}: its first tensor is {next(iter(stored), 'none')}. "
            "Give a configuration of the network that it is (--config), or another source."
        )
    network = _with_heads(network.model_copy(update={"vocab_size": rows}), task, shapes, stated)
    vocabulary = _vocabulary(path, folder, given)
    entries = read_vocabulary(vocabulary)
    # Before anything is asked of the user: a wrong file would not help.
    _check_rows(vocabulary, len(entries), rows)
    settings = _settings(vocabulary, entries, folder, given)
    _check_case(vocabulary, entries, settings)
    headless = not task and not any(part_of(name, network.family) == PARTS[2] for name in shapes)
    pooler = any(part_of(name, network.family) == "pooler" for name in shapes)
    source = Source(
        path,
        folder,
        weights,
        file,
        network,
        names,
        headless,
        pooler,
        entries,
        vocabulary,
        settings,
        [stored[name].name for name, known in ours.items() if known is None],
    )
    _check_tensors(source, shapes)
    return source


def _weights(path: Path) -> tuple[Weights, Path]:
    """The weights in `path`, and the folder that they lie in."""
    if (path / MANIFEST).is_file() or (path / "recipe.toml").is_file():
        raise RecipeError(
            f"{path} was made by this program: `bertwright export` writes the folder in the format of transformers, "
            "and a training can start from a run as it is."
        )
    if path.is_dir() and (inner := _transformer(path)) is not None:
        path = inner
    return open_weights(path), folder_of(path)


def _transformer(folder: Path) -> Path | None:
    """The folder of the network in one of sentence-transformers, which older versions put into a folder of its own."""
    paths = sorted(path for path in folder.glob("0_*") if (path / "config.json").is_file())
    return paths[0] if paths and (folder / "modules.json").is_file() else None


def _config(path: Path, folder: Path, weights: Weights, given: Given) -> tuple[Path, Mapping[str, Any]]:
    """The configuration, and the file that states it."""
    if given.config is not None:
        return given.config, read_config_file(given.config)
    if (file := config_file(folder)) is not None:
        return file, read_config_file(file)
    if (inside := weights.config) is not None:
        return weights.files[0], inside
    raise RecipeError(
        f"{path} has no configuration of its network: there is no config.json and no {GOOGLE_CONFIG} beside its "
        "weights. Give the file (--config FILE)."
    )


def _task(file: Path, stated: Mapping[str, Any], stored: Mapping[str, Any]) -> str:
    """The task by which transformers' class is named; "" for pre-training and for an encoder alone."""
    if stated.get("architectures"):
        return task_in(stated)
    if any(name.startswith("qa_outputs.") for name in stored):
        return TASKS["span"]
    if any(name.startswith("classifier.") for name in stored):
        raise RecipeError(
            f"the weights have a classifier, but {file} does not say of what. Give a configuration (--config) with "
            'its class, such as "architectures": ["BertForSequenceClassification"], or TokenClassification, '
            "MultipleChoice."
        )
    return ""


def _with_heads(network: NetworkConfig, task: str, shapes: TensorShapes, stated: Mapping[str, Any]) -> NetworkConfig:
    """The network with the heads that the file has."""
    if not task:
        both = "next_sentence" in type(network).model_fields and "nsp.classifier.weight" in shapes
        return network.model_copy(update={"next_sentence": True}) if both else network
    head = head_in(stated, task)
    pooling = stated.get("classifier_pooling", "cls")
    if network.family == "modern" and pooling != "cls" and head in ("sequence", "several", "choice"):
        raise RecipeError(
            f"the classifier reads the {pooling} of all tokens (classifier_pooling), and classifiers here the state "
            "of [CLS]. Import the network that it was made from, and fine-tune it."
        )
    if not (labels := labels_in(stated, head, shapes.get("classification.classifier.weight", (0,))[0])):
        raise ArtifactError(
            f"it has no classifier, although its configuration names a class for {task}. Give --config."
        )
    return network.model_copy(update={"labels": labels, "head": head})


def _vocabulary(path: Path, folder: Path, given: Given) -> Path:
    """The file of the entries."""
    file = given.vocabulary or entries_file(folder)
    if file is None:
        raise RecipeError(f"{path} has no vocabulary: no {' and no '.join(FILES)}. Give the file (--vocab FILE).")
    if given.vocabulary is None:
        _check_both(folder)
    return file


def _settings(file: Path, entries: Sequence[str], folder: Path, given: Given) -> TextSettings:
    """How text is changed before it is tokenised: what files say, or else the user."""
    settings = text_settings(file.parent) or (text_settings(folder) if given.vocabulary else None)
    if settings is None and given.lower_case is not None:
        return TextSettings(given.lower_case, given.lower_case)
    if settings is None:
        capital = next((e for e in entries if e != e.lower() and not e.startswith("[")), "")
        hint = f"its entry {capital!r} suggests --cased" if capital else "no entry has a capital letter: --lower-case"
        raise RecipeError(
            f"{file.parent} does not say whether text is lower-cased before it is tokenised. Give --lower-case (which "
            f"removes accents, too) or --cased; {hint}."
        )
    if given.lower_case is not None:
        case = "lower-cased" if settings.lower_case else "cased"
        option = "--lower-case" if given.lower_case else "--cased"
        raise RecipeError(
            f"{option} has no effect: the tokenizer in {file.parent} says that text is {case}. Leave it out."
        )
    return settings


def _check_both(folder: Path) -> None:
    """Raise `ArtifactError` if a folder has two vocabularies: which one was trained with cannot be known."""
    files = [folder / name for name in FILES]
    if not all(file.is_file() for file in files):
        return
    first, second = map(entries_of, files)
    if first != second:
        raise ArtifactError(
            f"{folder} has two vocabularies: vocab.txt with {len(first):,} entries and tokenizer.json with "
            f"{len(second):,} others. Give the one that the network was trained with (--vocab FILE)."
        )


def _check_rows(file: Path, entries: int, rows: int) -> None:
    """Raise `ArtifactError` if there are no words, or other rows than entries, unless padding explains them."""
    if entries <= len(SPECIALS):
        raise ArtifactError(
            f"{file} has {entries:,} entries, all of them special, so that every word would be [UNK]. Give the "
            "vocabulary that the network was trained with (--vocab FILE)."
        )
    if rows - entries <= max(_MULTIPLES[0], entries // 8) and any(
        rows == -(-entries // multiple) * multiple for multiple in (1, *_MULTIPLES)
    ):
        return
    what = (
        "some ids would have no embedding"
        if entries > rows
        else "no rounding up to a multiple of 8 to 1,024 gives that"
    )
    raise ArtifactError(
        f"{file} has {entries:,} entries, but the embedding has {rows:,} rows: {what}. Give the vocabulary that the "
        "network was trained with (--vocab FILE)."
    )


def _check_case(file: Path, entries: list[str], settings: TextSettings) -> None:
    lost = unreachable(entries, *settings[:2])
    if len(lost) > MOST_UNREACHABLE * len(entries):
        raise ArtifactError(
            f"{len(lost):,} of the {len(entries):,} entries of {file} could never occur (such as "
            f"{', '.join(map(repr, lost[:3]))}) if text is {case_of(settings)}, as its tokenizer says. Give the "
            "vocabulary that the network was trained with (--vocab FILE)."
        )


def case_of(settings: TextSettings) -> str:
    """How text is changed before it is tokenised, in words."""
    case = "lower-cased" if settings.lower_case else "cased"
    return f"{case}, accents {'removed' if settings.strip_accents else 'kept'}"


def _expected(network: NetworkConfig, headless: bool, pooler: bool) -> TensorShapes:
    tensors = network.tensors
    if not headless:
        return tensors
    kept = {name: shape for name, shape in tensors.items() if part_of(name, network.family) == "encoder"}
    width = network.hidden_size
    return kept | (linear(f"{network.family}.pooler.dense", width, width) if pooler else {})


def _check_tensors(source: Source, shapes: TensorShapes) -> None:
    """Raise `ArtifactError` naming the first tensors that are absent or of another shape."""
    faults = list(_faults(source, shapes))
    if faults:
        more = f" ({len(faults) - 3} more like these)" if len(faults) > 3 else ""
        raise ArtifactError(
            f"{source.path} is not the {source.network.title} that its configuration describes: "
            f"{'; '.join(faults[:3])}{more}. Give the configuration that belongs to it (--config), or a complete copy."
        )


def _faults(source: Source, shapes: TensorShapes) -> Iterator[str]:
    for name, shape in source.expected.items():
        if name not in shapes:
            yield f"{name} is absent"
        elif shapes[name] != shape:
            yield f"{name} is {shapes[name]}, not {shape}"
