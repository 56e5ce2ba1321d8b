"""Scores of classifiers beside restatements of their definitions, one loop over the examples each, in float64."""

import math
from itertools import pairwise

import numpy as np
import pytest
from tests.rows import each_row

from bertwright.tasks.classification.class_scores import frequent_labels, of_classes, of_labels, of_numbers
from bertwright.tasks.confusions import confusion_matrix, of_several
from bertwright.tasks.confusions import of_classes as of_all


def f1_of(guessed: list[int], right: list[int], label: int) -> float:
    hits = sum(g == r == label for g, r in zip(guessed, right, strict=True))
    wrong = sum((g == label) != (r == label) for g, r in zip(guessed, right, strict=True))
    return 2 * hits / (2 * hits + wrong) if hits or wrong else 0.0


def phi(guessed: list[int], right: list[int]) -> float:
    """Matthews' correlation of two classes: Pearson's of the two columns of 0 and 1."""
    return float(np.corrcoef(guessed, right)[0, 1])


def matthews_of_many(guessed: list[int], right: list[int], classes: int) -> float:
    """Gorodkin 2004: covariances of the indicators, summed over the classes."""
    g, r = (np.eye(classes)[values] for values in (guessed, right))

    def covariance(x: np.ndarray, y: np.ndarray) -> float:
        return float(sum(((x[:, k] - x[:, k].mean()) * (y[:, k] - y[:, k].mean())).sum() for k in range(classes)))

    return covariance(g, r) / math.sqrt(covariance(g, g) * covariance(r, r))


def rank(values: list[float]) -> list[float]:
    return [sum(v < x for v in values) + (sum(v == x for v in values) + 1) / 2 for x in values]


@each_row("seed", range(5))
def test_of_two_classes(seed: int) -> None:
    random = np.random.default_rng(seed)
    right = random.integers(0, 2, 40)
    guessed = np.where(random.random(40) < 0.7, right, 1 - right)
    found = of_classes(guessed, right, 2)
    assert found["accuracy"] == pytest.approx(sum(guessed == right) / 40, rel=1e-12)
    assert found["f1"] == pytest.approx(f1_of(guessed.tolist(), right.tolist(), 1), rel=1e-12)
    assert found["matthews"] == pytest.approx(phi(guessed.tolist(), right.tolist()), rel=1e-9)


@each_row("seed", range(3))
def test_of_three_classes(seed: int) -> None:
    random = np.random.default_rng(seed)
    right, guessed = random.integers(0, 3, 50), random.integers(0, 3, 50)
    found, lists = of_classes(guessed, right, 3), (guessed.tolist(), right.tolist())
    assert found["f1"] == pytest.approx(sum(f1_of(*lists, label) for label in range(3)) / 3, rel=1e-12)
    assert found["matthews"] == pytest.approx(matthews_of_many(*lists, 3), rel=1e-9)


def test_of_numbers_with_ties() -> None:
    x, y = [0.1, 2.0, 2.0, 3.5, -1.0, 0.1], [1.0, 2.5, 2.0, 5.0, 0.0, 1.0]
    found = of_numbers(np.array(x), np.array(y))
    assert found["pearson"] == pytest.approx(float(np.corrcoef(x, y)[0, 1]), rel=1e-12)
    assert found["spearman"] == pytest.approx(float(np.corrcoef(rank(x), rank(y))[0, 1]), rel=1e-12)
    assert all(a <= b for a, b in pairwise(sorted(rank(x))))


def test_a_constant_has_no_correlation() -> None:
    assert of_classes(np.array([1, 1]), np.array([0, 1]), 2)["matthews"] is None
    none = {"pearson": None, "spearman": None}
    assert of_numbers(np.array([1.0, 1.0]), np.array([0.0, 1.0])) == none
    # Seven times 0.1 has not the mean 0.1.
    assert of_numbers(np.full(7, 0.1), np.arange(7.0)) == none == of_numbers(np.arange(7.0), np.full(7, 0.1))


def test_scores_of_a_table_by_hand() -> None:
    """Right 0 0 0 1 1, guessed 0 0 1 1 0: of class 1 there is one hit, one false alarm and one miss."""
    found = of_classes(np.array([0, 0, 1, 1, 0]), np.array([0, 0, 0, 1, 1]), 2)
    assert found["accuracy"] == pytest.approx(3 / 5) and found["f1"] == pytest.approx(2 / (2 + 1 + 1))
    # (true positives x true negatives - false positives x false negatives) / root of the product of the four sums
    assert found["matthews"] == pytest.approx((1 * 2 - 1 * 1) / math.sqrt(2 * 2 * 3 * 3))


def test_f1_leaves_out_absent_classes_and_counts_missed_as_0() -> None:
    two = of_classes(np.array([0, 0, 1]), np.array([0, 0, 1]), 4)
    assert two["f1"] == 1.0 and two["accuracy"] == 1.0, "classes 2 and 3 are neither there nor guessed"
    missed = of_classes(np.array([0, 0, 0]), np.array([0, 0, 2]), 3)
    assert missed["f1"] == pytest.approx((2 * 2 / (2 * 2 + 1) + 0) / 2)
    assert of_classes(np.array([0, 0]), np.array([0, 0]), 2)["f1"] == 0.0, "as in GLUE: there is no class 1"


@each_row("seed", range(5))
def test_of_several_labels(seed: int) -> None:
    random = np.random.default_rng(seed)
    right = random.random((40, 6)) < 0.3
    guessed = np.where(random.random((40, 6)) < 0.8, right, ~right)
    right[:, 4], guessed[:, 4] = False, False  # of a label that nobody gave F1 is 0
    found, pairs = of_labels(guessed, right), list(zip(guessed.T.tolist(), right.T.tolist(), strict=True))
    every = [column.astype(int).reshape(-1).tolist() for column in (guessed, right)]
    assert found["f1_micro"] == pytest.approx(f1_of(*every, 1), rel=1e-12)
    assert found["f1_macro"] == pytest.approx(sum(f1_of(g, r, True) for g, r in pairs) / 6, rel=1e-12)
    whole = [g == r for g, r in zip(guessed.tolist(), right.tolist(), strict=True)]
    assert found["accuracy"] == sum(whole) / 40


def test_scores_of_several_labels_are_those_of_sklearn() -> None:
    metrics = pytest.importorskip("sklearn.metrics", reason="scikit-learn is not installed")
    random = np.random.default_rng(7)
    right, guessed = random.random((60, 5)) < 0.4, random.random((60, 5)) < 0.4
    right[:, 2], guessed[:, 2] = False, False
    found = of_labels(guessed, right)
    for mean in ("micro", "macro"):
        assert found[f"f1_{mean}"] == pytest.approx(metrics.f1_score(right, guessed, average=mean, zero_division=0))
    assert found["accuracy"] == pytest.approx(metrics.accuracy_score(right, guessed))
    classes = random.integers(0, 3, (2, 60))
    weighted = metrics.f1_score(classes[1], classes[0], average="weighted")
    assert of_classes(classes[0], classes[1], 3)["f1_weighted"] == pytest.approx(weighted)
    each = of_several(guessed, right, list("abcde"))["classes"]
    report = metrics.classification_report(
        right, guessed, target_names=list("abcde"), output_dict=True, zero_division=0
    )
    for name, wanted in each.items():
        found_of = {"f1-score" if score == "f1" else score: value for score, value in wanted.items()}
        assert found_of == pytest.approx(report[name])


def test_exclusive_classes_have_the_same_correlation_as_labels() -> None:
    random = np.random.default_rng(3)
    right, guessed = random.integers(0, 3, 50), random.integers(0, 3, 50)
    marks = [np.eye(3, dtype=bool)[each] for each in (guessed, right)]
    assert of_labels(*marks)["matthews"] == pytest.approx(of_classes(guessed, right, 3)["matthews"], rel=1e-9)
    same = np.broadcast_to(marks[0][:1], marks[1].shape)
    assert of_labels(same, marks[1])["matthews"] is None


@each_row("seed", range(5))
def test_no_other_constant_answer_has_a_higher_f1(seed: int) -> None:
    random = np.random.default_rng(seed)
    right = random.random((30, 5)) < random.random(5)
    every = np.array([[bool(number >> k & 1) for k in range(5)] for number in range(1, 32)])
    scores = [of_labels(np.broadcast_to(each, right.shape), right)["f1_micro"] or 0.0 for each in every]
    chosen = of_labels(np.broadcast_to(frequent_labels(right), right.shape), right)["f1_micro"]
    assert chosen == pytest.approx(max(scores), rel=1e-12)


def test_the_most_confused_classes_come_first() -> None:
    guessed, right = np.array([0, 1, 1, 2, 2, 0]), np.array([0, 0, 0, 2, 1, 2])
    found = of_all(confusion_matrix(guessed, right, 3), ["a", "b", "c"])
    assert found["confusion_matrix"] == [[1, 2, 0], [0, 0, 1], [1, 0, 1]]
    assert found["confused"] == [
        {"right": "a", "answer": "b", "count": 2},
        {"right": "b", "answer": "c", "count": 1},
        {"right": "c", "answer": "a", "count": 1},
    ]
    assert found["answered"] == {"a": 2, "b": 2, "c": 2}
    missed = of_several(np.array([[False, True]]), np.array([[True, False]]), ["a", "b"])
    assert missed["confused"] == [{"right": "a", "answer": "b", "count": 1}]
