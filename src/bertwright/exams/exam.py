"""What an exam is, and what it says of a model. A kind of exam is a section of a suite, in a module of its own."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from bertwright.core.config import Section, UserPath
from bertwright.core.errors import DataError
from bertwright.core.files import naming, sha256, sha256_of
from bertwright.corpus.characters import compose
from bertwright.exams.interval import interval_of_mean
from bertwright.exams.shapes import ScoreJson
from bertwright.model.text_encoder import Encoder

Item = TypeVar("Item")
VERSION = 1
"""Raised when the same exam gives a model other scores."""
RISES = "rises with training"


class Score(NamedTuple):
    """One score of a model in an exam."""

    exam: str
    name: str
    value: float
    interval: tuple[float, float] | None = None
    """Where 95 of 100 exams with other items of the same kind would put it; None: not resampled."""
    chance: float | None = None
    """What a model that knows nothing scores; None: not known."""
    healthy: str = ""
    """What a healthy model scores, or what another value says."""
    share: bool = True
    """Whether it is a share, from 0 to 1."""
    text: str = ""
    """What is shown, if it is words."""
    items: tuple[float, ...] = ()
    """What each item scores, the same ones for every model; models are compared by them."""

    def to_json(self) -> ScoreJson:
        """What files and programs get: no items, and words only if there are any."""
        found = ScoreJson(
            exam=self.exam,
            name=self.name,
            value=self.value,
            interval=self.interval,
            chance=self.chance,
            healthy=self.healthy,
            share=self.share,
        )
        if self.text:
            found["text"] = self.text
        return found


def share_of(right: Sequence[float] | NDArray[Any], exam: str, name: str, chance: float, healthy: str = RISES) -> Score:
    """The score of N items that are `right` [N], 1 or 0 each, with its interval."""
    items = np.asarray(right, np.float64)
    value, low, high = interval_of_mean(items)
    return Score(exam, name, value, (low, high), chance, healthy, items=tuple(items.tolist()))


def evenly(found: Sequence[Item], most: int) -> list[Item]:
    """At most `most` of the items, spread evenly."""
    number = min(most, len(found))
    return [found[i * len(found) // number] for i in range(number)]


class Exam(Section):
    """The base of the sections of exams."""

    name: str = ""
    """What the exam is called in tables; empty: its kind."""

    @abstractmethod
    def take(self, encoder: Encoder) -> Iterator[Score]:
        """Yield the scores of a model.

        Raises `DataError` for unusable data, and `RecipeError` if the exam needs a head that the model lacks.
        """

    @property
    def title(self) -> str:
        """What the exam is called."""
        return self.name or str(getattr(self, "kind", ""))

    @property
    def content(self) -> str:
        """The SHA-256 over what it asks, files included."""
        values = ((name, getattr(self, name)) for name in type(self).model_fields)
        return sha256_of({name: sha256(value) if isinstance(value, Path) else repr(value) for name, value in values})


class TextExam(Exam):
    """The base of exams on plain texts."""

    texts: tuple[str, ...] = ()
    """The texts; give either these or `file`."""
    file: UserPath | None = None
    """A file with a text on each line."""
    most: int = Field(500, gt=0)
    """Texts that are read, from the beginning."""

    def read(self) -> list[str]:
        """The texts; `DataError` if there are none."""
        texts = list(self.texts)
        if self.file is not None:
            with naming(self.file), self.file.open(encoding="utf-8-sig") as lines:
                texts += [line.strip() for line in lines]
        found = [compose(text) for text in texts if text][: self.most]
        if len(found) < 2:
            raise DataError(
                f"{self.title}: {self.file or 'texts'} has {len(found)} texts, too few to score a model on."
            )
        return found
