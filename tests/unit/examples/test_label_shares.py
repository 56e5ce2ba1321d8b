"""Warnings about labels: shares that differ between the splits, repeated texts, and contradictions."""

import json
from pathlib import Path

from tests.unit.test_classification import recipe
from tests.unit.train.test_run import Notes

from bertwright import run
from bertwright.examples.information import different_shares


def test_shares_that_differ_by_more_than_chance_are_named() -> None:
    (sentence,) = different_shares(([500, 500], [160, 40]), (1000, 200), ["no", "yes"])
    assert "(over 4 standard errors): no 50.0% and 80.0%; yes 50.0% and 20.0%" in sentence


def test_chance_and_small_differences_are_not() -> None:
    # SST-2: 55.8 % of the training phrases are positive, 50.9 % of the sentences held out: 2.9 standard errors.
    assert not list(different_shares(([29780, 37569], [428, 444]), (67349, 872), ["no", "yes"]))
    assert not list(different_shares(([500, 500], [30, 10]), (1000, 40), ["no", "yes"])), "too few"
    assert not list(different_shares(([500000, 500000], [52000, 48000]), (10**6, 10**5), ["no", "yes"])), "2 points"


def test_shares_of_several_labels_are_of_texts() -> None:
    (sentence,) = different_shares(([900, 900], [10, 90]), (1000, 100), ["a", "b"])
    assert "a 90.0% and 10.0%;" in sentence + ";" and "b " not in sentence.partition("errors): ")[2].partition(";")[0]


def test_repeated_and_contradictory_texts_are_counted(tmp_path: Path) -> None:
    rows = [{"text": f"the {word} is good .", "label": label} for word, label in (("mill", 0), ("river", 1))]
    wanted, notes = recipe(tmp_path, 'labels = ["poor", "fine"]', rows), Notes()
    train = [*rows, {**rows[0], "label": 1}, {"text": "bread", "label": 0}]
    dev = [{**rows[1], "label": 0}, {"text": "the old mill", "label": 1}, rows[0]]
    for name, each in (("train", train), ("dev", dev)):
        (tmp_path / "data" / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in each))
    run(wanted, tmp_path / "run", ("vocab", "examples"), notes)
    said = "\n".join(notes.lines)
    assert (
        "warning: 2 of the held-out texts (66.7\u00a0%) also occur in the training texts, word for word (1 of" in said
    )
    assert "warning: 1 of the training texts occur with different labels" in said
