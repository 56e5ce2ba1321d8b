"""Exact match, F1 and the best threshold, compared with a restatement of the rules of SQuAD's official script."""

import math

import numpy as np
import pytest
from tests.reference import squad
from tests.rows import each_row

from bertwright.tasks.span.answer_scores import Answered, best_threshold, exact_match, f1, normalize, score

WORDS = ("The", "an", "old", "OLD,", "river", "Danube", "(Danube)", "in", "1848", "'the'", "", " ", "é", "—")


@each_row(
    "answer, known, exact, overlap",
    [
        ("The  Danube!", "danube", 1.0, 1.0),
        ("the old Danube", "Danube", 0.0, 2 / 3),
        ("", "", 1.0, 1.0),
        ("the", "", 1.0, 1.0),
        ("river", "", 0.0, 0.0),
        ("old old river", "old river river", 0.0, 2 / 3),
        ("Dunaújváros", "Duna", 0.0, 0.0),
    ],
)
def test_answers_are_compared_after_normalisation(answer: str, known: str, exact: float, overlap: float) -> None:
    assert exact_match(answer, known) == exact == squad.exact(answer, known)
    assert f1(answer, known) == pytest.approx(overlap)
    assert squad.overlap(answer, known) == pytest.approx(overlap)
    assert normalize(answer).split() == squad.words_of(answer)


@pytest.mark.parametrize("seed", range(8))
def test_scores_and_threshold_follow_the_official_rules(seed: int) -> None:
    random = np.random.default_rng(seed)

    def text() -> str:
        return " ".join(random.choice(WORDS, random.integers(0, 4)))

    ours = []
    for _ in range(60):
        known = [text() for _ in range(random.integers(0, 4))]
        ours.append(Answered(str(random.choice([*known, text()])), float(random.normal()), known))
    theirs = [squad.Asked(each.known, each.text, each.none_margin) for each in ours]
    for threshold in (None, -1.0, 0.0, 0.5):
        found, same = score(ours, threshold), math.inf if threshold is None else threshold
        assert found.exact == pytest.approx(squad.percent(squad.exact, theirs, same))
        assert found.f1 == pytest.approx(squad.percent(squad.overlap, theirs, same))
    assert best_threshold(ours) == squad.best_threshold(squad.overlap, theirs)


def test_never_answering_is_kept_if_nothing_is_better() -> None:
    assert best_threshold([Answered("river", -1.0, ()), Answered("old", -2.0, ["new"])]) == 0.0
    assert score([]) == (0.0, 0.0, 0)
