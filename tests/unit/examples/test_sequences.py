"""Lengths of examples: their mean and deviation, by hand from the distributions that they stand for."""

import math

import pytest

from bertwright.examples.sequences import Sequences


def test_guessed_lengths_are_full_or_uniform_below() -> None:
    """With a mean of three quarters half of the sequences are full, and the others uniform from 0 to the length."""
    found = Sequences.guessed((5, 6), 96, 128)
    square = 0.5 * 128**2 + 0.5 * 128**2 / 3
    assert found.per_pass == (5, 6) and found.mean_length == 96 and found.longest == 128
    assert found.deviation == pytest.approx(math.sqrt(square - 96**2))


def test_guessed_lengths_of_full_sequences_do_not_differ() -> None:
    assert Sequences.guessed((), 128, 128).deviation == 0


def test_guessed_lengths_below_half_are_uniform() -> None:
    """None are full: the mean square is that of the uniform distribution, a third of the length's square."""
    assert Sequences.guessed((), 64, 128).deviation == pytest.approx(128 / math.sqrt(12))
    assert Sequences.guessed((), 40, 128).deviation == pytest.approx(math.sqrt(128**2 / 3 - 40**2))


def test_counted_lengths_are_those_of_the_counts() -> None:
    counts = {"lengths": [9, 1, *[0] * 18], "mean_length": 10.0, "deviation": 6.5, "longest": 31}
    found = Sequences.counted([10], counts, 512)
    assert (found.per_pass, found.deviation, found.longest, found.mean_square) == ((10,), 6.5, 31, 10.0**2 + 6.5**2)
    assert Sequences.counted([0], {**counts, "lengths": [0] * 20, "longest": 0}, 512).longest == 512, "none counted"


def test_epochs_are_the_inverse_of_the_sequences_in_them() -> None:
    uneven = Sequences((100, 60, 80), 12.0, 2.0, 16)
    for epochs, sequences in ((0.5, 50), (1, 100), (1.5, 130), (3, 240), (4.25, 355)):
        assert uneven.of_epochs(epochs) == sequences
        assert uneven.epochs(sequences) == pytest.approx(epochs)
    assert Sequences((), 12.0, 2.0, 16).epochs(100) is None
