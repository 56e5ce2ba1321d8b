"""The page's section on exams: curves over tokens, hours and operations, and the words of the last checkpoint."""

from types import SimpleNamespace
from typing import cast

from bertwright.exams.shapes import Curve, Scored, ScoreJson
from bertwright.page.markup import element, html
from bertwright.report.exams import exams
from bertwright.report.facts import Facts


def score(exam: str, name: str, value: float, chance: float | None, **more: object) -> ScoreJson:
    given = {"interval": (value - 0.1, value + 0.1), "healthy": "rises", "share": chance is not None, **more}
    return cast(ScoreJson, {"exam": exam, "name": name, "value": value, "chance": chance, **given})


def shown(*scores: list[ScoreJson]) -> str:
    points = [
        Scored(
            checkpoint=f"step-{n}", step=n, tokens=n * 10, hours=n / 10, tflops=float(n), weights=str(n), scores=each
        )
        for n, each in enumerate(scores)
    ]
    facts = SimpleNamespace(exams=(Curve(suite="quick", content="", points=points),))
    return html(element("section", exams(cast(Facts, facts))), "")


def test_right_answers_are_drawn_over_three_axes() -> None:
    page = shown(
        *([score("wiki", "order", 0.5 + n / 10, 0.5), score("masked", "loss", 7.0 - n, None)] for n in range(3))
    )
    for axis in ("tokens", "hours of training", "operations (10^12)"):
        assert f"Right answers over {axis}" in page
    assert page.count("chance: 50") >= 3
    assert "masked: loss" in page
    assert "60" in page
    assert "Words" not in page


def test_words_are_those_of_the_last_checkpoint() -> None:
    page = shown(*([score("neighbours", "the", 0.5, None, text=f"word{n}")] for n in range(2)))
    assert "word1" in page
    assert "word0" not in page
    assert "Right answers" not in page
