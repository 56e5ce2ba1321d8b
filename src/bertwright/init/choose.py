"""Choose the size of the network and how long it trains, from a forecast for the machine and the hours."""

from __future__ import annotations

import math
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass, replace

from bertwright.check.recipe.advice import READINGS
from bertwright.core.errors import RecipeError
from bertwright.core.toml import validate
from bertwright.estimate.example_lengths import BYTES_A_TOKEN
from bertwright.estimate.hours import score_seconds, stage_seconds
from bertwright.estimate.known_data import Data
from bertwright.forecast_shapes import Plan
from bertwright.init.draft import SIZES, PhaseDraft, Request, Section, draft
from bertwright.plan.plan import make_plan
from bertwright.recipe import Recipe

# Hoffmann et al. 2022, for networks as large as their budget allows (decision 0046).
ENOUGH = 20
"""Minimum number of training tokens per weight of the chosen network."""
_QUICK = 2
"""Number of the smallest sizes that a first look may use."""
_LEAST_SHARE = 0.1
"""Minimum share of the hours that training should have."""


@dataclass(frozen=True)
class Choice:
    """A recipe and its forecast."""

    size: str
    sections: list[Section]
    plan: Plan
    preparing: float | None
    """Hours for corpus, vocabulary and examples; None: the size of the text is not known."""
    finishing: float
    """Hours for scores and export."""
    training: float
    """Hours for the phases."""


def choose(request: Request) -> Choice:
    """Return the largest network that fits and trains on enough tokens in the hours; else the smallest one that fits.

    Raises `RecipeError` if the hours are too few even to prepare the text, or if no network fits on the machine.
    """
    sizes = reversed(SIZES[: _QUICK if request.quick else None])
    fitting = (fits for size in sizes if (fits := _fit(request, size)))
    # From the largest down; if none sees enough tokens, the smallest that fits is what remains in `found`.
    found = None
    for found in fitting:
        seen = sum(found.tokens(phase, speed) for phase, speed in zip(found.phases, found.speeds, strict=True))
        if seen >= ENOUGH * found.recipe.network().parameters:
            break
    if found is None:
        raise _impossible(request)
    return _choice(found)


def text_of(sections: Sequence[Section]) -> str:
    """Return the sections as TOML, with their reasons as comments in one column."""
    blocks = []
    for header, lines in sections:
        width = max(len(f"{key} = {value}") for key, value, _ in lines)
        rows = (f"{f'{key} = {value}':<{width}}  # {why}" if why else f"{key} = {value}" for key, value, why in lines)
        blocks.append("\n".join([header, *rows]))
    return "\n\n".join(blocks) + "\n"


def recipe_of(sections: Sequence[Section]) -> Recipe:
    """Return the recipe that consists of the sections."""
    recipe: Recipe = validate(Recipe, tomllib.loads(text_of(sections)), "the drafted recipe", {})
    recipe.check("the drafted recipe")
    return recipe


@dataclass(frozen=True)
class _FittingNetwork:
    """A network that fits on the machine, and its forecast for the hours."""

    request: Request
    size: str
    recipe: Recipe
    phases: tuple[PhaseDraft, ...]
    speeds: tuple[float, ...]
    """Tokens per second in each phase."""
    preparing: float | None
    finishing: float

    @property
    def training(self) -> float:
        """Hours left for the phases."""
        return self.request.answers.hours - (self.preparing or 0.0) - self.finishing

    def tokens(self, phase: PhaseDraft, speed: float, times: float = 1.0) -> float:
        """Return the tokens of a phase in `times` its hours, limited to the useful number of passes over the text."""
        most = times * speed * phase.share * self.training * 3600
        if text := self.request.kept_bytes:
            most = min(most, READINGS * phase.share * text / BYTES_A_TOKEN)
        return most


def _impossible(request: Request) -> RecipeError:
    """Return the error that says why not even the smallest network can be trained."""
    answers = request.answers
    # Without a least share only the memory can be too small, which distinguishes the two reasons.
    smallest = _fit(request, SIZES[0], least=-math.inf)
    if smallest is None:
        return RecipeError(
            f"--machine {answers.machine}: not even the smallest network fits into the memory of this machine. Give "
            "another machine."
        )
    return RecipeError(
        f"--hours {answers.hours:g}: preparing the text, scoring and exporting alone take about "
        f"{answers.hours - smallest.training:.2g} hours on {answers.machine}. Give more hours, or a machine with "
        "more cores."
    )


def _fit(request: Request, size: str, least: float = _LEAST_SHARE) -> _FittingNetwork | None:
    """Return a network of this size; None if it does not fit in the memory of a device, or if less than the share
    `least` of the hours is left for training."""
    # Lengths and batches determine memory and speed; these determine how long training may take.
    phases = tuple(PhaseDraft(length, share, 10**10, 1.0) for length, share in _lengths(request))
    recipe = recipe_of(draft(request, size, phases))
    plan = make_plan(recipe, {}, request.machine)
    if not plan["fits"]:
        return None
    speeds = tuple(phase["tokens_per_second"] for phase in plan["phases"])
    network = _FittingNetwork(request, size, recipe, phases, speeds, *_other_hours(request, recipe, speeds[-1]))
    return network if network.training >= least * request.answers.hours else None


def _choice(network: _FittingNetwork) -> Choice:
    """Return the recipe with its budget: the hours, and at most twice the tokens that the forecast expects in them."""
    # Batches depend on the tokens, and speed on the batches: the speeds so far are for `_fit`'s placeholder tokens.
    first = make_plan(recipe_of(draft(network.request, network.size, _budget(network))), {}, network.request.machine)
    network = replace(network, speeds=tuple(phase["tokens_per_second"] for phase in first["phases"]))
    sections = draft(network.request, network.size, _budget(network))
    plan = make_plan(recipe_of(sections), {}, network.request.machine)
    training = sum(phase["hours"] or 0.0 for phase in plan["phases"])
    return Choice(network.size, sections, plan, network.preparing, network.finishing, training)


def _budget(network: _FittingNetwork) -> list[PhaseDraft]:
    """Return the phases with their hours and tokens, at the known speeds."""
    return [
        # No more hours than the passes over the text take, because the learning rate decays over the hours. The token
        # forecast is accurate to two digits at most.
        replace(
            phase, hours=network.tokens(phase, speed) / speed / 3600, tokens=max(100_000, int(float(f"{tokens:.1e}")))
        )
        for phase, speed in zip(network.phases, network.speeds, strict=True)
        for tokens in (network.tokens(phase, speed, 2.0),)
    ]


def _lengths(request: Request) -> list[tuple[int, float]]:
    """Return the sequence length and the share of the time of each phase."""
    if request.quick:
        return [(128, 1.0)]
    if request.best:
        # Articles of a small Wikipedia are short.
        return [(1024 if (request.text_bytes or 0) >= 2e8 else 512, 1.0)]
    # BERT made nine tenths of its steps at 128 (Devlin et al. 2019 §A.2), and a step at 512 takes longer.
    return [(128, 0.85), (512, 0.15)]


def _other_hours(request: Request, recipe: Recipe, speed: float) -> tuple[float | None, float]:
    """Return the hours before training (None if the size of the text is not known) and after it."""
    # There is no run folder yet, so of the data only the size of the text is known.
    data = Data("nothing", request.kept_bytes, tokens=None, sets={}, imported={}, heldout={}, disk={})
    scoring = score_seconds(recipe.train.phases[-1].length / speed)
    seconds = stage_seconds(recipe, data, request.machine, None, scoring, ())
    before = [seconds[name] for name in ("corpus", "vocab", "examples")]
    hours = None if None in before else sum(value or 0.0 for value in before) / 3600
    return hours, ((seconds["evaluate"] or 0.0) + (seconds["export"] or 0.0)) / 3600
