"""A verdict: what was checked, the result, and what to do about a problem."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from bertwright.core.errors import BertwrightError, RecipeError
from bertwright.core.secrets import hide_secrets


@dataclass(frozen=True)
class Verdict:
    """The result of one check."""

    level: Literal["ok", "warning", "error"]
    """Whether the check passed, may cause problems, or failed."""
    about: str
    """The key of the recipe, or the part of the machine."""
    text: str
    """What was found."""
    remedy: str = ""
    """What to do; empty if the check passed."""
    kind: type[BertwrightError] = RecipeError
    """The exception class that an error raises."""

    @property
    def sentence(self) -> str:
        """What was found and what to do."""
        return f"{self.text} {self.remedy}".rstrip()

    def as_dict(self) -> dict[str, str]:
        """Return the verdict as JSON values."""
        return {"level": self.level, "about": self.about, "text": self.text, "remedy": self.remedy}


def ok(about: str, text: str) -> Verdict:
    """Return a verdict that the check passed."""
    return Verdict("ok", about, hide_secrets(text))


def warning(about: str, text: str, remedy: str) -> Verdict:
    """Return a verdict that something may fail, or work badly."""
    return Verdict("warning", about, hide_secrets(text), hide_secrets(remedy))


def error(about: str, text: str, remedy: str, kind: type[BertwrightError] = RecipeError) -> Verdict:
    """Return a verdict that the run would fail."""
    return Verdict("error", about, hide_secrets(text), hide_secrets(remedy), kind)


def from_exception(about: str, cause: BertwrightError) -> Verdict:
    """Return the verdict for an exception: its first sentence is the text, the others are the remedy."""
    # Messages of our errors state first what is wrong, then what to do.
    text, point, remedy = str(cause).partition(". ")
    return error(about, text + point.rstrip(), remedy, type(cause))


def refuse(verdicts: Iterable[Verdict]) -> None:
    """Raise the exception class of the first error, with the sentences of all errors, if there are any."""
    if errors := [verdict for verdict in verdicts if verdict.level == "error"]:
        # All at once: otherwise users would fix one error only to meet the next.
        raise errors[0].kind("\n".join(verdict.sentence for verdict in errors))


def exit_code(verdicts: Iterable[Verdict]) -> int:
    """Return the exit code of the first error, else 0."""
    return next((verdict.kind.exit_code for verdict in verdicts if verdict.level == "error"), 0)


def verdict_rows(verdicts: Iterable[Verdict]) -> Iterator[tuple[str, str, str]]:
    """Yield level, padded name and sentence of each verdict, for lines in columns."""
    rows = list(verdicts)
    width = max((len(verdict.about) for verdict in rows), default=0)
    # Raised errors begin with their key, which has its own column here.
    return ((row.level, f"{row.about:<{width}}", row.sentence.removeprefix(f"{row.about}: ")) for row in rows)
