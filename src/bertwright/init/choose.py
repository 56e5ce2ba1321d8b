"""The size of the network, and how much it is trained, by a forecast for the machine and the hours."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from bertwright.check.advice import READINGS
from bertwright.check.resources import BYTES_A_TOKEN
from bertwright.core.errors import RecipeError
from bertwright.core.toml import validate
from bertwright.init.draft import SIZES, Asked, PhaseDraft, Section, draft
from bertwright.plan.data import KEPT, Data
from bertwright.plan.hours import score_seconds, stage_seconds
from bertwright.plan.plan import make_plan
from bertwright.plan.shapes import Plan
from bertwright.recipe import Recipe

ENOUGH = 20
"""Tokens that are trained on for each weight, at least, of the network that is chosen."""
_QUICK = 2
"""How many of the sizes a first look may have."""
_LEAST_SHARE = 0.1
"""Share of the hours that training should have at least."""


@dataclass(frozen=True)
class Choice:
    """A recipe and its forecast."""

    size: str
    sections: list[Section]
    plan: Plan
    preparing: float | None
    """Hours of corpus, vocabulary and examples; None: the size of the text is not known."""
    finishing: float
    """Hours of scores and export."""
    training: float
    """Hours of the phases."""


def choose(asked: Asked) -> Choice:
    """The largest network that fits and sees enough tokens in the hours; else the smallest.

    Raises `RecipeError` where the hours are too few even to prepare the text, or no network fits on the machine.
    """
    fitting = (tried for size in reversed(SIZES[: _QUICK if asked.quick else None]) if (tried := _tried(asked, size)))
    found = None
    for found in fitting:
        seen = sum(found.tokens(phase, speed) for phase, speed in zip(found.phases, found.speeds, strict=True))
        if seen >= ENOUGH * found.recipe.network().parameters:
            break
    if found is None:
        raise _impossible(asked)
    return _choice(found)


def text_of(sections: Sequence[Section]) -> str:
    """The sections as TOML, with their reasons as comments in one column."""
    blocks = []
    for header, lines in sections:
        width = max(len(f"{key} = {value}") for key, value, _ in lines)
        rows = (f"{f'{key} = {value}':<{width}}  # {why}" if why else f"{key} = {value}" for key, value, why in lines)
        blocks.append("\n".join([header, *rows]))
    return "\n\n".join(blocks) + "\n"


def recipe_of(sections: Sequence[Section]) -> Recipe:
    """The recipe that the sections are."""
    recipe: Recipe = validate(Recipe, tomllib.loads(text_of(sections)), "the drafted recipe", {})
    recipe.check("the drafted recipe")
    return recipe


@dataclass(frozen=True)
class _Tried:
    """A network that fits, and what can be done with it in the hours."""

    asked: Asked
    size: str
    recipe: Recipe
    phases: tuple[PhaseDraft, ...]
    speeds: tuple[float, ...]
    """Tokens a second in each phase."""
    preparing: float | None
    finishing: float

    @property
    def training(self) -> float:
        """Hours that are left for the phases."""
        return self.asked.answers.hours - (self.preparing or 0.0) - self.finishing

    def tokens(self, phase: PhaseDraft, speed: float, times: float = 1.0) -> float:
        """What a phase sees in `times` its hours, and in no more passes over the text than help."""
        most = times * speed * phase.share * self.training * 3600
        if text := self.asked.facts.text_bytes:
            most = min(most, READINGS * phase.share * KEPT * text / BYTES_A_TOKEN)
        return most


def _impossible(asked: Asked) -> RecipeError:
    """Why not even the smallest network can be trained."""
    answers = asked.answers
    smallest = _tried(asked, SIZES[0], least=-math.inf)
    if smallest is None:
        return RecipeError(f"--machine {answers.machine}: not even the smallest network fits there. Name another.")
    return RecipeError(
        f"--hours {answers.hours:g}: to prepare the text, to score and to export takes about "
        f"{answers.hours - smallest.training:.2g} hours on {answers.machine}. Give more hours, or a machine with more "
        "cores."
    )


def _tried(asked: Asked, size: str, least: float = _LEAST_SHARE) -> _Tried | None:
    """A network of this size; None where it does not fit in the memory of a device, or where less than the share
    `least` of the hours is left to train it."""
    # What fits, and how fast it is, follows from lengths and batches; how long it is trained, from that.
    phases = tuple(PhaseDraft(length, share, 10**10, 1.0) for length, share in _lengths(asked))
    recipe = recipe_of(draft(asked, size, phases))
    plan = make_plan(recipe, {}, asked.machine)
    if not plan["fits"]:
        return None
    speeds = tuple(phase["tokens_per_second"] for phase in plan["phases"])
    tried = _Tried(asked, size, recipe, phases, speeds, *_beside(asked, recipe, speeds[-1]))
    return tried if tried.training >= least * asked.answers.hours else None


def _choice(tried: _Tried) -> Choice:
    """The recipe with its budget: the hours, and at most twice the tokens that the forecast has for them."""
    # Batches follow from the tokens, and the speed from the batches: what was tried had those of few tokens.
    first = make_plan(recipe_of(draft(tried.asked, tried.size, _budget(tried))), {}, tried.asked.machine)
    tried = replace(tried, speeds=tuple(phase["tokens_per_second"] for phase in first["phases"]))
    sections = draft(tried.asked, tried.size, _budget(tried))
    plan = make_plan(recipe_of(sections), {}, tried.asked.machine)
    training = sum(phase["hours"] or 0.0 for phase in plan["phases"])
    return Choice(tried.size, sections, plan, tried.preparing, tried.finishing, training)


def _budget(tried: _Tried) -> list[PhaseDraft]:
    """Hours and tokens of each phase, at the speeds that are known."""
    return [
        # No more hours than the passes over the text take, since the rate falls with them. Two digits of tokens are
        # all that is known.
        replace(
            phase, hours=tried.tokens(phase, speed) / speed / 3600, tokens=max(100_000, int(float(f"{tokens:.1e}")))
        )
        for phase, speed in zip(tried.phases, tried.speeds, strict=True)
        for tokens in (tried.tokens(phase, speed, 2.0),)
    ]


def _lengths(asked: Asked) -> list[tuple[int, float]]:
    """Length of the sequences and share of the time of each phase."""
    if asked.quick:
        return [(128, 1.0)]
    if asked.modern:
        # Articles of a small Wikipedia are short.
        return [(1024 if (asked.facts.text_bytes or 0) >= 2e8 else 512, 1.0)]
    return [(128, 0.85), (512, 0.15)]


def _beside(asked: Asked, recipe: Recipe, speed: float) -> tuple[float | None, float]:
    """Hours before training, None where the text is not known, and after it."""
    text = asked.facts.text_bytes
    data = Data("nothing", None if text is None else KEPT * text, None, {}, {}, {}, {})
    scoring = score_seconds(recipe.train.phases[-1].length / speed)
    seconds = stage_seconds(recipe, data, asked.machine, None, scoring, ())
    before = [seconds[name] for name in ("corpus", "vocab", "examples")]
    hours = None if None in before else sum(value or 0.0 for value in before) / 3600
    return hours, ((seconds["evaluate"] or 0.0) + (seconds["export"] or 0.0)) / 3600
