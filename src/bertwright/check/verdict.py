"""A verdict: what was looked at, whether it will do, and what to do where it will not."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from bertwright.core.errors import BertwrightError, RecipeError


@dataclass(frozen=True)
class Verdict:
    """One thing that was looked at."""

    level: Literal["ok", "warning", "error"]
    """Whether it will do, may not do, or will not do."""
    about: str
    """The key of the recipe, or the part of the machine."""
    text: str
    """What was found."""
    remedy: str = ""
    """What to do; empty where all is well."""
    kind: type[BertwrightError] = RecipeError
    """What an error of it is raised as."""

    @property
    def sentence(self) -> str:
        """What was found and what to do."""
        return f"{self.text} {self.remedy}".rstrip()

    def as_dict(self) -> dict[str, str]:
        """The same as plain JSON."""
        return {"level": self.level, "about": self.about, "text": self.text, "remedy": self.remedy}


def ok(about: str, text: str) -> Verdict:
    """It will do."""
    return Verdict("ok", about, text)


def warning(about: str, text: str, remedy: str) -> Verdict:
    """It may not do, or not well."""
    return Verdict("warning", about, text, remedy)


def error(about: str, text: str, remedy: str, kind: type[BertwrightError] = RecipeError) -> Verdict:
    """It will not do."""
    return Verdict("error", about, text, remedy, kind)


def raised(about: str, cause: BertwrightError) -> Verdict:
    """The verdict that an error says in its first sentence, with the remedy in those after it."""
    # Errors say first what is wrong, then what to do.
    text, point, remedy = str(cause).partition(". ")
    return error(about, text + point.rstrip(), remedy, type(cause))


def refuse(verdicts: Iterable[Verdict]) -> None:
    """Raise what the first error is raised as, with all of them, if there is one."""
    if errors := [verdict for verdict in verdicts if verdict.level == "error"]:
        # All of them at once: who mends one and starts again would meet the next only then.
        raise errors[0].kind("\n".join(verdict.sentence for verdict in errors))


def exit_code(verdicts: Iterable[Verdict]) -> int:
    """That of the first error, else 0."""
    return next((verdict.kind.exit_code for verdict in verdicts if verdict.level == "error"), 0)


def verdict_lines(verdicts: Iterable[Verdict]) -> Iterator[str]:
    """A line for each verdict, in columns."""
    rows = list(verdicts)
    width = max((len(verdict.about) for verdict in rows), default=0)
    # Errors that are raised begin with their key, which has a column of its own here.
    return (f"{row.level:<7}  {row.about:<{width}}  {row.sentence.removeprefix(f'{row.about}: ')}" for row in rows)
