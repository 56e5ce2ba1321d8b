"""Drafts the recipe that fine-tunes a model for a task: its keys, each with the reason for its value, and its text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from bertwright.core.errors import RecipeError
from bertwright.core.overrides import apply_overrides
from bertwright.core.toml_values import value_text
from bertwright.examples.labelled.config import glue_folder
from bertwright.examples.own_files import Files, find_files
from bertwright.finetune.guess import (
    batch_of_pairs,
    describe_questions,
    guess_choices,
    guess_pairs,
    guess_tags,
    guess_texts,
    hulu_columns,
)
from bertwright.finetune.tasks import OPTIMIZER, TEMPERATURE, FinetuneTask, Key, find_task, phase_of, windows_of
from bertwright.model.pretrained_config import Pretrained, find_pretrained
from bertwright.recipe import Recipe
from bertwright.recipe_file import Written
from bertwright.tasks.choice.config import ChoiceConfig
from bertwright.tasks.classification.config import ClassificationConfig
from bertwright.tasks.embedding.config import EmbeddingConfig
from bertwright.tasks.span.config import SpanConfig
from bertwright.tasks.tagging.config import TaggingConfig
from bertwright.train.settings.phase_config import LENGTHS

_OF_PAIRS = ("anchor", "positive", "negatives", "group")
_COLUMNS = ("text", "pair", "label", "several", "word", "tag")
_OF_CHOICES = ("context", "question", "choices", "first", "words")
"""Keys of `train.objective` that say how the files are read, so that what is guessed depends on them."""
_SHARE = 0.1
_GIVEN = "given on the command line"
_SECTIONS = ("vocab", "examples", "model", "optim", "train", "train.objective")
"""The sections that are drafted, in the order of the text."""


@dataclass(frozen=True)
class Draft:
    """A drafted recipe."""

    task: FinetuneTask
    keys: Mapping[str, Key]
    """The keys that were drafted, dotted, with their reasons."""
    values: Mapping[str, Any]
    """All values, with the user's in place of the drafted ones."""
    hidden_size: int
    """That of the model."""

    def changed(self, overrides: Sequence[str]) -> Draft:
        """The draft with other values of some keys, as on the command line."""
        values = deepcopy(dict(self.values))
        if gives_length(overrides):
            values["train"]["phases"][0].pop("epochs", None)
        apply_overrides(values, overrides, Recipe)
        return replace(self, values=values)

    def recipe(self, seed: int | None = None) -> Recipe:
        """The recipe, with another seed if one is given; raises `RecipeError` as `Recipe.load`."""
        values = {**self.values, "train": {**self.values["train"], **({} if seed is None else {"seed": seed})}}
        name = f"the recipe of finetune {self.task.name}"
        recipe = Recipe.from_values(Written(name, values, {}))
        recipe.check(name)
        return recipe

    @property
    def text(self) -> str:
        """The recipe as TOML; the comment of each key names its origin."""
        return "\n".join(_text(self)) + "\n"

    @property
    def found(self) -> Iterator[str]:
        """What was read from the data, a sentence for each key."""
        for name, key in self.keys.items():
            if name.startswith(("train.objective.", "examples.")) and key.why:
                yield f"{name} = {_shortened(value_text(key.value))}: {key.why}"


def gives_length(overrides: Sequence[str]) -> bool:
    """Whether the user says how long the phase is; it has only one length."""
    keys = tuple(f"train.phases.0.{name}=" for name in LENGTHS)
    return any(each.startswith(keys) and not each.endswith("=") for each in overrides)


def draft(name: str, model: Path, data: Path | None, overrides: Sequence[str] = ()) -> Draft:
    """Draft the recipe for a task, from the folder of a model and the data, which tasks of GLUE find themselves.

    `overrides` are the user's, as on the command line. Raises `RecipeError` if there is no such task, data or model,
    and `DataError` if the data is not that of the task.
    """
    task, given = find_task(name), _objective(overrides)
    if data is None and task.kind != "glue":
        raise RecipeError(f"finetune {name} has no data: give --data, the folder or file of {_wanted(task)}.")
    start = find_pretrained(model)
    data = data or Path("glue") / name
    phase = phase_of(task, start.network.hidden_size, start.network.max_position_embeddings)
    keys = {
        **_start(start),
        **{f"optim.{key}": value for key, value in OPTIMIZER.items()},
        "train.init_from": Key(str(start.path)),
        "train.evaluate_every": Key("epoch", "the last epoch is the result; the others are in the report"),
        "train.checkpoint_every": Key("epoch"),
        **{f"train.objective.{key}": value for key, value in _task_keys(task, data, given).items()},
        **_heldout_share(task, data),
    }
    keys |= {f"train.phases.0.{key}": value for key, value in {**phase, "data": Key(str(data))}.items()}
    if task.kind == "embedding":
        own = EmbeddingConfig.model_validate({"kind": "embedding", **_nested(keys)["train"]["objective"]}).files
        files = find_files(data, own, "--data").train
        keys["train.phases.0.batch"] = batch = batch_of_pairs(files, own, phase["batch"])
        if phase["micro_batch"].value > batch.value:
            keys["train.phases.0.micro_batch"] = Key(batch.value, "the whole batch")
    if task.kind == "span":
        keys |= {f"train.objective.{key}": value for key, value in windows_of(phase["length"].value).items()}
    drafted = Draft(task, keys, _nested(keys), start.network.hidden_size).changed(overrides)
    if start.text_settings is None and not {"lower_case", "strip_accents"} <= set(drafted.values["vocab"]):
        raise RecipeError(
            f"{start.path} does not say whether its vocabulary is in lower case. Give vocab.lower_case=true or false, "
            "and vocab.strip_accents likewise."
        )
    return drafted


def _wanted(task: FinetuneTask) -> str:
    known = {"tagging": "tagged words", "span": "questions about texts", "classify": "labelled texts"}
    known |= {"embedding": "pairs of texts that belong together"}
    known |= {} if task.layout.words else {"choice": "questions with choices"}
    return known.get(task.kind, f"{task.name}'s files")


def _objective(overrides: Sequence[str]) -> dict[str, Any]:
    """What the user says of the columns."""
    values: dict[str, Any] = {"train": {"objective": {}}}
    names = tuple(f"train.objective.{name}=" for name in (*_COLUMNS, *_OF_CHOICES, *_OF_PAIRS))
    some = [each for each in overrides if each.startswith(names) and not each.endswith("=")]
    apply_overrides(values, some, Recipe)
    given = values["train"]["objective"]
    return {name: str(value) if name in _COLUMNS else value for name, value in given.items()}


def _start(start: Pretrained) -> dict[str, Key]:
    """The keys of vocabulary and network: those of the model."""
    whose = "the model's"
    keys = {"vocab.file": Key(str(start.entries_file), whose)}
    if start.text_settings is not None:
        keys |= {f"vocab.{name}": Key(value, whose) for name, value in start.text_settings.stated.items()}
    keys["model.kind"] = Key(start.network.family, whose)
    if start.config_file is None:
        raise RecipeError(
            f"{start.path} has its configuration among its weights, where a recipe cannot name it. Import it first, "
            f"and give the folder that this makes: bertwright import {start.path} --out DIR."
        )
    return {**keys, "model.config": Key(str(start.config_file), whose)}


def _task_keys(task: FinetuneTask, data: Path, given: Mapping[str, Any]) -> dict[str, Key]:
    """The keys of `train.objective`, from the training files where the task does not determine them."""
    if task.kind == "glue":
        files = ClassificationConfig.model_validate({"task": task.name}).files
        find_files(glue_folder(data), files, "--data")
        return {"kind": Key("classification"), "task": Key(task.name, "Wang et al. 2019")}
    if task.kind == "tagging":
        found = find_files(data, TaggingConfig(tags=("any",)).files, "--data")
        return {"kind": Key("tagging"), **guess_tags(task, found.train, given)}
    if task.kind == "span":
        found = find_files(data, SpanConfig().files, "--data")
        return {"kind": Key("span", describe_questions(found.train, found.heldout))}
    if task.kind == "embedding":
        pairs = EmbeddingConfig.model_validate({name: given[name] for name in _OF_PAIRS if name in given}).files
        found = find_files(data, pairs, "--data")
        columns = guess_pairs([*found.train, *found.heldout], pairs)
        return {"kind": Key("embedding"), "temperature": Key(0.05, TEMPERATURE), **columns}
    if task.kind == "choice":
        try:
            own = ChoiceConfig.model_validate(given).files
        except ValidationError as error:
            fault = error.errors()[0]
            key = f"train.objective.{fault['loc'][0]}"
            raise RecipeError(f"{key}: {fault['msg']}, got {given.get(str(fault['loc'][0]))!r}.") from error
        found = find_files(data, own, "--data")
        return {"kind": Key("choice"), **guess_choices(task, [*found.train, *found.heldout], own.layout)}
    found = _texts(data)
    if task.kind == "hulu":
        return {"kind": Key("classification"), **hulu_columns(task, found.train[0])}
    return {"kind": Key("classification"), **guess_texts([*found.train, *found.heldout], given)}


def _heldout_share(task: FinetuneTask, data: Path) -> dict[str, Key]:
    """The key of the share of the training file that is held out, if there is no file for that."""
    tagging, span, choice = TaggingConfig(tags=("any",)).files, SpanConfig().files, ChoiceConfig().files
    known = {"tagging": tagging, "span": span, "choice": choice, "embedding": EmbeddingConfig().files}
    own = known.get(task.kind, ClassificationConfig(labels=("any",)).files)
    if find_files(glue_folder(data), own, "--data").heldout:
        return {}
    return {"examples.heldout": Key(_SHARE, "no file of dev texts: a tenth of the training file, by a hash of each")}


def _texts(data: Path) -> Files:
    return find_files(data, ClassificationConfig(labels=("any",)).files, "--data")


def _nested(keys: Mapping[str, Key]) -> dict[str, Any]:
    """The values of the keys as sections; `train.phases` is a list of one."""
    values: dict[str, Any] = {"train": {"phases": [{}]}}
    for dotted, key in keys.items():
        *above, last = dotted.split(".")
        inner: Any = values
        for part in above:
            inner = inner[int(part)] if isinstance(inner, list) else inner.setdefault(part, {})
        inner[last] = key.value
    return values


def _text(draft: Draft) -> Iterator[str]:
    yield f"# Fine-tunes {draft.values['train'].get('init_from', 'random weights')} for {draft.task.name}."
    yield "# Drafted by `bertwright finetune`; the comment of each key names its origin."
    values = {name: section for name, section in draft.values.items() if isinstance(section, dict)}
    loose = {name: value for name, value in draft.values.items() if name not in values}
    yield from _table(draft, "", loose)
    train = dict(values["train"])
    phases, objective = train.pop("phases"), train.pop("objective")
    values |= {"train": train, "train.objective": objective}
    for name in (*_SECTIONS, *(name for name in values if name not in _SECTIONS)):
        yield from _table(draft, name, values.get(name, {}))
    for number, phase in enumerate(phases):
        yield from _table(draft, f"train.phases.{number}", phase)


def _table(draft: Draft, name: str, values: Mapping[str, Any]) -> Iterator[str]:
    if not values:
        return
    yield ""
    if name:
        yield "[[train.phases]]" if name.startswith("train.phases.") else f"[{name}]"
    rows = {f"{key} = {value_text(value)}": _reason(draft, f"{name}.{key}", value) for key, value in values.items()}
    width = min(max(map(len, rows)), 40)
    for row, why in rows.items():
        yield f"{row:<{width}}  # {why}" if why else row


def _reason(draft: Draft, name: str, value: Any) -> str:
    drafted = draft.keys.get(name)
    return drafted.why if drafted is not None and drafted.value == value else _GIVEN


def _shortened(text: str) -> str:
    return text if len(text) <= 100 else f"{text[:99]}…"
