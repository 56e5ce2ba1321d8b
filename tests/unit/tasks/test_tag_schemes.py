"""Schemes of entity tags and the scores of entities, compared with the package seqeval."""

import warnings
from collections.abc import Iterator

import numpy as np
import pytest
from seqeval.metrics import f1_score, precision_score, recall_score
from seqeval.metrics.sequence_labeling import get_entities
from seqeval.scheme import IOB2, IOBES, Entities

from bertwright.tasks.tagging.entity_scores import score_entities, score_repaired, total
from bertwright.tasks.tagging.schemes import (
    EntityScheme,
    LearnedScheme,
    all_tags,
    find_scheme,
    read_entities,
    strict_entities,
    write_tags,
)

SCHEMES: tuple[tuple[LearnedScheme, type], ...] = (("iob2", IOB2), ("bioes", IOBES))
TYPES = ("PER", "LOC", "creative-work")


def some(scheme: LearnedScheme, number: int) -> Iterator[list[str]]:
    """Sentences of random tags, most of which break the scheme."""
    random, tags = np.random.default_rng(7), all_tags(TYPES, scheme)
    for _ in range(number):
        yield random.choice(tags, random.integers(1, 9)).tolist()


@pytest.mark.parametrize(("scheme", "their"), SCHEMES)
def test_strict_entities_are_those_of_seqeval(scheme: LearnedScheme, their: type) -> None:
    for tags in some(scheme, 2_000):
        (wanted,) = Entities([tags], their).entities
        assert strict_entities(tags, scheme) == [(each.start, each.end, each.tag) for each in wanted], tags


@pytest.mark.parametrize("scheme", ["iob2", "bioes"])
def test_repaired_entities_are_those_of_conlleval(scheme: LearnedScheme) -> None:
    for tags in some(scheme, 2_000):
        wanted = [(begin, last + 1, kind) for kind, begin, last in get_entities(tags)]
        assert read_entities(tags, scheme)[0] == wanted, tags


@pytest.mark.parametrize(("scheme", "their"), SCHEMES)
def test_scores_are_those_of_seqeval(scheme: LearnedScheme, their: type) -> None:
    random, tags = np.random.default_rng(3), all_tags(TYPES, scheme)
    for _ in range(50):
        actual = [write_tags(read_entities(each, scheme)[0], len(each), scheme) for each in some(scheme, 6)]
        predicted = [[tag if random.random() < 0.8 else random.choice(tags) for tag in each] for each in actual]
        strict = total(score_entities(predicted, actual, scheme).values())
        repaired = total(score_repaired(predicted, actual, scheme).values())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of scores that are 0 because nothing was found
            for their_score, name in ((f1_score, "f1"), (precision_score, "precision"), (recall_score, "recall")):
                assert getattr(strict, name) == pytest.approx(
                    their_score(actual, predicted, mode="strict", scheme=their)
                )
                assert getattr(repaired, name) == pytest.approx(their_score(actual, predicted))


@pytest.mark.parametrize("scheme", ["iob2", "iob1", "bioes"])
def test_entities_survive_every_scheme(scheme: EntityScheme) -> None:
    for tags in some("iob2", 500):
        entities, _ = read_entities(tags, "iob2")
        written = write_tags(entities, len(tags), scheme)
        assert read_entities(written, scheme) == (entities, [])


def test_broken_tags_are_named() -> None:
    assert read_entities(["O", "I-PER", "I-PER", "B-LOC", "I-PER"], "iob2")[1] == [1, 4]
    assert read_entities(["B-PER", "O", "E-LOC", "S-LOC", "B-LOC"], "bioes")[1] == [0, 2, 4]
    assert read_entities(["B-PER", "I-PER", "O", "I-LOC"], "iob1")[1] == [0]


def test_other_letters_mean_the_same() -> None:
    bilou = ["B-PER", "I-PER", "L-PER", "U-LOC", "O"]
    bmes = ["B-PER", "M-PER", "E-PER", "W-LOC", "O"]
    for tags in (bilou, bmes):
        assert find_scheme([tags]) == "bioes"
        assert read_entities(tags, "bioes") == ([(0, 3, "PER"), (3, 4, "LOC")], [])


def test_the_scheme_of_a_file_is_found() -> None:
    for scheme in ("iob2", "iob1", "bioes"):
        sentences = [write_tags(read_entities(tags, "iob2")[0], len(tags), scheme) for tags in some("iob2", 50)]
        assert find_scheme(sentences) == scheme
    assert find_scheme([["NOUN", "VERB", "O"]]) is None
    assert find_scheme([["O", "O"]]) is None
    # One stray tag in a thousand does not hide the scheme.
    assert find_scheme([["B-PER", "I-PER", "O"] * 400, ["V"]]) == "iob2"
