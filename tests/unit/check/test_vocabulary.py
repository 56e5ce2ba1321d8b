"""A given vocabulary that cannot be used is told before the corpus is made, with and without data made elsewhere."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.unit.formats.samples import MASK, SPECIALS, VOCABULARY, sample

from bertwright import Recipe
from bertwright.check.check_recipe import check_recipe
from bertwright.check.verdict import Verdict
from bertwright.core.errors import DataError, RecipeError
from bertwright.formats import lddl
from bertwright.formats.format import Shape
from bertwright.formats.hdf5 import padded as hdf5

STAGES = ("corpus", "vocab", "examples")
Told = Callable[..., dict[str, Verdict]]


@pytest.fixture
def told(load: Callable[..., Recipe], small_recipe: Path, tmp_path: Path) -> Told:
    """`told(entries, "key=value")`: the errors of the recipe with these entries as its `vocab.file`, by their key."""

    def check(entries: list[str], *overrides: str) -> dict[str, Verdict]:
        (tmp_path / "given.txt").write_text("".join(f"{entry}\n" for entry in entries))
        config = json.loads((small_recipe.parent / "bert.json").read_text()) | {"vocab_size": len(VOCABULARY)}
        (tmp_path / "bert.json").write_text(json.dumps(config))
        given = f"vocab.file={tmp_path / 'given.txt'}", f"model.config={tmp_path / 'bert.json'}"
        recipe = load("vocab.size=", "vocab.alphabet_coverage=", *given, *overrides)
        verdicts = check_recipe(recipe, tmp_path / "run", STAGES)
        return {verdict.about: verdict for verdict in verdicts if verdict.level == "error"}

    return check


@pytest.fixture
def data(tmp_path: Path) -> str:
    """The override that gives a phase examples whose ids are those of `VOCABULARY`."""
    hdf5.write(tmp_path / "x_training_0.hdf5", iter([sample(40, length=16)]), Shape(16, 5, static=True))
    return f"train.phases.0.data={tmp_path / 'x_training_0.hdf5'}"


def test_examples_of_the_given_vocabulary_are_no_fault(told: Told, data: str) -> None:
    assert told(VOCABULARY, "vocab.lower_case=true", data) == {}


def test_a_file_that_is_no_vocabulary_is_a_fault(told: Told, data: str) -> None:
    for overrides in ((), (data,)):
        (fault,) = told(["once", "upon", "a", "time"], *overrides).values()
        assert (fault.about, fault.kind) == ("vocab.file", DataError) and "lacks [PAD]" in fault.text


def test_text_settings_that_do_not_fit_the_vocabulary(told: Told) -> None:
    (fault,) = told([*SPECIALS, *(f"Word{i}" for i in range(300))], "vocab.lower_case=true").values()
    assert (fault.about, fault.kind) == ("vocab.file", RecipeError) and "could never occur" in fault.text


@pytest.mark.parametrize(
    ("entries", "says"),
    [
        (VOCABULARY[:400], "but the vocabulary has 400 entries"),
        (["[CLS]", "[PAD]", "[UNK]", *VOCABULARY[3:]], "40 examples begin with id 2, not [CLS] (0)"),
        ([*VOCABULARY[:4], "other", "[MASK]", *VOCABULARY[6:]], f"id {MASK} is at most predicted positions, not"),
    ],
    ids=["too small", "other [CLS]", "other [MASK]"],
)
def test_examples_of_another_vocabulary_are_a_fault(entries: list[str], says: str, told: Told, data: str) -> None:
    (fault,) = told(entries, data).values()
    assert (fault.about, fault.kind) == ("train.phases.0.data", DataError)
    assert says in fault.text and "x_training_0.hdf5" in fault.text and "set vocab.file to theirs" in fault.remedy


def test_unknown_words_are_an_error_unless_quarantined(told: Told, tmp_path: Path) -> None:
    lddl.write(tmp_path / "x.parquet", iter([sample(40, length=16)]), Shape(None, None, static=True), VOCABULARY)
    data = f"train.phases.0.data={tmp_path / 'x.parquet'}"
    (fault,) = told(VOCABULARY[:30], data).values()
    assert fault.about == "train.phases.0.data" and "no piece" in fault.text and "quarantine=true" in fault.remedy
    assert told(VOCABULARY[:30], data, "train.phases.0.quarantine=true") == {}
