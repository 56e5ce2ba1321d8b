"""Warnings about settings that run and contradict what is published of them, or the data."""

from tests.rows import each_row

from bertwright import Recipe
from bertwright.check.recipe.advice import advice
from bertwright.estimate.known_data import read_data
from bertwright.shipped import shipped

STAGES = ["train"]


def warned(name: str, *overrides: str, text: float | None = None) -> list[str]:
    recipe = Recipe.load(name, overrides, given=False)
    # The same data that `plan` forecasts with: of 6 bytes of a source, 5 become a token after 15 % are dropped.
    data = None if text is None else read_data(recipe, {}, text)
    verdicts = list(advice(recipe, STAGES, data))
    assert all(verdict.level == "warning" and verdict.remedy for verdict in verdicts)
    return [f"{verdict.about}: {verdict.text}" for verdict in verdicts]


@each_row("name", shipped())
def test_shipped_recipes_follow_their_own_advice(name: str) -> None:
    """But MLPerf's, which says in its head that it needs a checkpoint of phase 1, and Azure's 100 epochs."""
    found = warned(name)
    assert [line for line in found if "second phase" not in line and "read 100 times" not in line] == []
    assert bool(found) == (name in ("mlperf-large", "azure-glue"))


def test_twenty_predictions_of_512_are_too_few() -> None:
    """The default of bertPrep.py with the length of its second phase."""
    (line,) = warned("nvidia-large", "train.phases.1.masking.max_predictions=20")
    assert line.startswith(
        "train.phases.1.masking.max_predictions: 20 predictions per sequence of 512 tokens are 3.9 %"
    )
    assert warned("nvidia-large", "train.phases.1.masking.max_predictions=76") == [], "99 % of the rate: MLPerf's"


def test_a_third_fewer_predictions_than_the_rate_are_too_few() -> None:
    """A rate that was raised, without the limit that holds it down."""
    (line,) = warned("nvidia-large", "train.phases.0.masking.rate=0.25")
    assert line.endswith(
        "20 predictions per sequence of 128 tokens are 15.6 % of its tokens, but masking.rate is 25 %."
    )


def test_the_rounding_of_the_rate_in_short_sequences_is_no_limit() -> None:
    short = ["train.phases.0.length=16", "train.phases.0.masking.max_predictions=2"]
    assert (
        warned("nvidia-large", *short)
        == []
        != warned("nvidia-large", *short[:1], "train.phases.0.masking.max_predictions=1")
    )


def test_the_second_phase_without_the_first() -> None:
    (line,) = warned("nvidia-large", "train.phases.0.length=512", "train.phases.0.masking.max_predictions=80")
    assert "starts from random weights with sequences of 512, as in the second phase of the published" in line
    assert warned("mlperf-large", "train.init_from=checkpoint") == []
    assert warned("modern-base") == [], "a network without pairs and learnt positions begins so"


def test_text_that_is_read_too_often() -> None:
    """64 billion tokens of a Wikipedia of 20 GB are 18 epochs, of a small one of 1 GB 368."""
    assert warned("nvidia-large", text=20e9) == []
    (line,) = warned("nvidia-large", text=1e9)
    assert "about 63.8 G tokens are trained on, 368 epochs of the 169 M of the corpus" in line
    assert warned("nvidia-large", "train.phases.1.data=elsewhere", text=1e9) != []
    timed = [f"train.phases.{number}.hours=1" for number in (0, 1)]
    assert warned("nvidia-large", *timed, text=1e9) == [], "the clock ends them, not their steps"
    (line,) = warned("azure-glue", "preset=bert-large-deepspeed", text=4e5)
    assert line.startswith("train.phases.0.epochs: each labelled text is read 1,000 times")
    hour = ("train.phases.0.hours=1", "train.phases.0.warmup=0.1")
    assert warned("azure-glue", "preset=bert-large-deepspeed", *hour, text=4e5) == []


def test_a_run_without_training_is_not_advised() -> None:
    assert list(advice(Recipe.load("mlperf-large"), ["corpus"], None)) == []
