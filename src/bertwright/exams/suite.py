"""Suites: exams that are taken together, and the table of what several models score."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

from pydantic import Field

from bertwright.core.config import Section
from bertwright.core.errors import RecipeError
from bertwright.core.files import naming
from bertwright.core.log import Log
from bertwright.exams.exam import Exam, Score
from bertwright.exams.masked_words import MaskedWords
from bertwright.exams.minimal_pairs import MinimalPairs
from bertwright.exams.probe import Probe
from bertwright.exams.vectors import Vectors
from bertwright.exams.wiki import Wiki
from bertwright.model.device import resolve_device
from bertwright.model.text_encoder import Encoder

AnyExam = Annotated[MaskedWords | MinimalPairs | Probe | Vectors | Wiki, Field(discriminator="kind")]
"""Any exam."""


class Suite(Section):
    """Exams that are taken together: the content of a suite's TOML file."""

    exam: tuple[AnyExam, ...] = Field(min_length=1)
    """The exams, in the order of the table."""

    @classmethod
    def load(cls, path: Path) -> Suite:
        """Read a suite's file; paths in it are relative to the folder of the file."""
        with naming(path), path.open("rb") as file:
            try:
                values = tomllib.load(file)
            except ValueError as error:
                raise RecipeError(f"{path} is not valid TOML: {error}. Correct it.") from error
        exams = values.get("exam")
        for exam in exams if isinstance(exams, list) else []:
            for key in ("data", "file", "train", "test"):
                if isinstance(exam, dict) and isinstance(exam.get(key), str):
                    exam[key] = str(path.parent / Path(exam[key]).expanduser())
        return cls(**values)


def score_models(models: Sequence[str], exams: Sequence[Exam], log: Log) -> dict[str, list[Score]]:
    """The scores of models, each a path as for `load_model`, in all exams; on a GPU if there is one.

    Raises `RecipeError` if no model can take any of the exams.
    """
    device = resolve_device("auto")
    scores = {model: list(take(exams, Encoder(model, device), model, log)) for model in models}
    if not any(scores.values()):
        names = ", ".join(exam.title for exam in exams)
        raise RecipeError(
            f"no model could take an exam ({names}), as said above. Give models with the heads they need."
        )
    return scores


def take(exams: Sequence[Exam], encoder: Encoder, model: str, log: Log) -> Iterator[Score]:
    """Yield the scores of a model in all exams; one that it cannot take is named in the log."""
    for exam in exams:
        try:
            yield from exam.take(encoder)
        except RecipeError as error:
            log.say(f"{model}: {exam.title}: {error}")
