"""What contradicts itself in the section `[vocab]`."""

import pytest
from pydantic import ValidationError
from tests.rows import each_row

from bertwright.vocab.config import VocabConfig

ABOUT_TRAINING = [
    ("trainer", {"kind": "sentencepiece"}),
    ("trainer", {"kind": "wordpiece", "min_frequency": 3}),
    ("alphabet_coverage", 0.99),
    ("unused", 100),
    ("sample_bytes", 1_000),
    ("seed", 7),
]


@each_row(("key", "value"), ABOUT_TRAINING)
def test_beside_a_given_file_a_setting_of_training_is_refused(key: str, value: object) -> None:
    with pytest.raises(ValidationError, match=rf"vocab\.file is a finished vocabulary, .*: leave out vocab\.{key} "):
        VocabConfig.model_validate({"file": "vocab.txt", key: value})
    VocabConfig.model_validate({"size": 300, key: value})


def test_all_that_is_refused_is_named_at_once() -> None:
    with pytest.raises(ValidationError, match=r"leave out vocab\.alphabet_coverage, vocab\.unused "):
        VocabConfig.model_validate({"file": "vocab.txt", "unused": 9, "alphabet_coverage": 0.5})


def test_the_resolved_form_of_a_given_file_is_accepted_again() -> None:
    config = VocabConfig.model_validate({"file": "vocab.txt", "lower_case": True, "strip_accents": True})
    assert VocabConfig.model_validate(config.model_dump(mode="json", exclude_none=True)) == config


def test_coverage_without_effect_is_refused() -> None:
    trainer = {"kind": "sentencepiece", "add_characters": False}
    with pytest.raises(
        ValidationError, match=r"alphabet_coverage=0\.5 has no effect with vocab\.trainer\.add_characters"
    ):
        VocabConfig.model_validate({"trainer": trainer, "alphabet_coverage": 0.5})
    VocabConfig.model_validate({"trainer": trainer})
    VocabConfig.model_validate({"trainer": {**trainer, "add_characters": True}, "alphabet_coverage": 0.5})


@each_row("unused", [95, 100, 101, 200])
def test_unused_entries_must_leave_room(unused: int) -> None:
    with pytest.raises(ValidationError, match=rf"vocab\.unused={unused} leaves no room in vocab\.size=100"):
        VocabConfig.model_validate({"size": 100, "unused": unused})
    assert VocabConfig.model_validate({"size": 100, "unused": 94}).unused == 94
