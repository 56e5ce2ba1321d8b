"""Which network is chosen, and for how long it trains, where the speeds of all networks are invented."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.rows import each_row

from bertwright.core.errors import RecipeError
from bertwright.init.answers import Answers, Quality, parse_machine
from bertwright.init.choose import ENOUGH, choose, recipe_of, text_of
from bertwright.init.draft import SIZES, Request
from bertwright.init.dump_sizes import WikiSize
from bertwright.recipe import Recipe


def request(text: int | None = None, *, hours: float = 24, quality: Quality = "quick") -> Request:
    """Two cores; a text of unknown size is no limit, and takes no time to prepare."""
    answers = Answers("hu", "2-cores", hours, quality, Path("x.toml"))
    return Request(answers, WikiSize(1, text, None if text is None else 1), parse_machine(answers.machine))


Forecast = Callable[..., None]


@pytest.fixture
def forecast(monkeypatch: pytest.MonkeyPatch) -> Forecast:
    """Replaces the forecast: `speed` has the tokens per second of a recipe, `fits` whether it fits in memory."""

    def replace(speed: Callable[[Recipe], float], fits: Callable[[Recipe], bool] = lambda recipe: True) -> None:
        def plan(recipe: Recipe, made: Any, machine: Any) -> dict[str, Any]:
            phases = [{"tokens_per_second": speed(recipe), "hours": phase.hours} for phase in recipe.train.phases]
            return {"fits": fits(recipe), "phases": phases}

        monkeypatch.setattr("bertwright.init.choose.make_plan", plan)

    return replace


def enough(recipe: Recipe) -> float:
    """The tokens per second with which a network sees just enough tokens in 24 hours."""
    return ENOUGH * recipe.network().parameters / (24 * 3600)


def size_of(recipe: Recipe) -> str:
    return str(recipe.model.size)


@each_row("size", SIZES)
def test_the_largest_network_that_sees_enough_tokens_is_chosen(size: str, forecast: Forecast) -> None:
    forecast(lambda recipe: enough(recipe) * (1.1 if size_of(recipe) == size else 0.9))
    assert choose(request(quality="classic")).size == size


@each_row(("speed", "size"), [(2.0, "medium"), (0.5, "mini")])
def test_the_largest_fitting_network_with_enough_tokens(speed: float, size: str, forecast: Forecast) -> None:
    forecast(lambda recipe: speed * enough(recipe), lambda recipe: size_of(recipe) in ("mini", "small", "medium"))
    assert choose(request(quality="classic")).size == size


def test_a_first_look_is_one_of_the_two_smallest(forecast: Forecast) -> None:
    forecast(lambda recipe: 1e9)
    assert choose(request()).size == "mini" and choose(request(quality="best")).size == "large"


def test_a_machine_that_nothing_fits_on_is_named(forecast: Forecast) -> None:
    forecast(lambda recipe: 1e6, lambda recipe: False)
    with pytest.raises(RecipeError, match="^--machine 2-cores: not even the smallest network fits into the memory"):
        choose(request())


@each_row(("preparing", "possible"), [(8.5, True), (8.51, False), (20.0, False)])
def test_a_tenth_of_the_hours_is_for_training(
    preparing: float, possible: bool, forecast: Forecast, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of ten hours, half of one is for scores and export."""
    forecast(lambda recipe: 1e6)
    monkeypatch.setattr("bertwright.init.choose._other_hours", lambda *_: (preparing, 0.5))
    if possible:
        choice = choose(request(hours=10))
        assert (choice.preparing, choice.finishing) == (preparing, 0.5)
        assert choice.training == pytest.approx(1.0)
        return
    with pytest.raises(RecipeError, match=rf"^--hours 10: .* alone take about {preparing + 0.5:.2g} hours on 2-cores"):
        choose(request(hours=10))


@each_row(
    ("quality", "text", "phases"),
    [
        ("quick", None, {128: 1.0}),
        ("classic", None, {128: 0.85, 512: 0.15}),
        ("best", None, {512: 1.0}),
        ("best", 2 * 10**8 - 1, {512: 1.0}),
        ("best", 2 * 10**8, {1024: 1.0}),
    ],
)
def test_a_quality_has_lengths_and_shares_of_the_time(
    quality: Quality, text: int | None, phases: dict[int, float], forecast: Forecast
) -> None:
    forecast(lambda recipe: 1e6)
    found = recipe_of(choose(request(text, quality=quality)).sections).train.phases
    total = sum(phase.hours or 0.0 for phase in found)
    assert {phase.length: (phase.hours or 0.0) / total for phase in found} == pytest.approx(phases, rel=0.01)


@each_row(
    ("text", "hours", "tokens", "trained"),
    [
        (None, 2, 14_000_000_000, 2.0),  # twice 7,200 seconds at a million a second, without scores and export
        (10**8, 24, 680_000_000, 0.189),  # 40 passes over 85 MB, 5 bytes a token
        (2_000, 24, 100_000, 3.78e-6),  # 13,600 tokens; a phase has more in any case
    ],
)
def test_the_token_budget_is_doubled_and_limited_to_40_passes(
    text: int | None, hours: float, tokens: int, trained: float, forecast: Forecast
) -> None:
    forecast(lambda recipe: 1e6)
    (phase,) = recipe_of(choose(request(text, hours=hours)).sections).train.phases
    assert phase.tokens == tokens and phase.hours == pytest.approx(trained, rel=0.01)


def test_the_budget_uses_the_speed_of_the_chosen_batches(forecast: Forecast) -> None:
    """Before the tokens are known, all networks have a batch for ten billion of them."""
    forecast(lambda recipe: 1e6 if recipe.train.phases[0].tokens == 10**10 else 5e5)
    (phase,) = recipe_of(choose(request(hours=2)).sections).train.phases
    assert phase.tokens == 7_200_000_000


def test_only_a_text_of_known_size_takes_time_to_prepare(forecast: Forecast) -> None:
    forecast(lambda recipe: 1e6)
    known, unknown = choose(request(10**9)), choose(request())
    assert unknown.preparing is None and known.preparing and known.preparing > 0.05
    assert known.finishing == pytest.approx(unknown.finishing, rel=0.1) and known.finishing > 0


def test_reasons_are_in_one_column_of_each_section() -> None:
    sections = [("[a]", [("k", "1", "why"), ("longer", "22", "")]), ("[[b]]", [("x", "true", "because")])]
    assert text_of(sections) == "[a]\nk = 1        # why\nlonger = 22\n\n[[b]]\nx = true  # because\n"


def test_a_draft_that_contradicts_itself_is_no_recipe(forecast: Forecast) -> None:
    forecast(lambda recipe: 1e6)
    sections = [(header, [line for line in lines if line[0] != "plan"]) for header, lines in choose(
        request(quality="best")
    ).sections]  # fmt: skip
    with pytest.raises(RecipeError, match="model.kind: modern has no segments"):
        recipe_of(sections)
