"""Other sections at a tiny scale: each replaced key has its condition, and without it stays as it is."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.rows import each_row

from bertwright import Recipe
from bertwright.check.verdict import Verdict
from bertwright.scale import replacements as scaling
from bertwright.scale.replacements import Replacement, scale_model, scale_text, scale_training
from bertwright.scale.tiny import format_value, load_tiny

PHASE = {"length": 64, "batch": 8, "learning_rate": 1e-3, "steps": 9}
CORPUS = {"source": "sample", "language": "hu"}


def recipe(train: dict[str, Any] | None = None, **keys: Any) -> Recipe:
    """A recipe of one phase; its sections are validated, and not compared with each other."""
    values: dict[str, Any] = {"corpus": CORPUS, "model": {"size": "base"}}
    return Recipe.model_validate({**values, "train": {"phases": [PHASE], **(train or {})}, **keys})


def values(replacements: Any) -> dict[str, Any]:
    return {each.key: each.value for each in replacements if isinstance(each, Replacement) and each.reason}


def text(given: Recipe, of_the_user: bool = False) -> dict[str, Any]:
    return values(scale_text(given, of_the_user))


ALWAYS = {"vocab.size": 800, "examples.passes": 1, "examples.heldout": 0.1, "corpus.workers": 1, "examples.workers": 1}
BUILT_IN = {"corpus.source": "sample-small", "corpus.language": "hu", "corpus.filter.languages": ["hu", "en"]}


def test_the_text_is_the_built_in_one_unless_the_user_gives_another() -> None:
    assert text(recipe()) == {**ALWAYS, **BUILT_IN, "corpus.split.command": None}
    assert text(recipe(), of_the_user=True) == ALWAYS
    unfiltered = recipe(corpus={**CORPUS, "filter": {"enabled": False}})
    assert "corpus.filter.languages" not in text(unfiltered), "it would filter"


def test_small_vocabulary_and_large_heldout_share_are_kept() -> None:
    small = recipe(vocab={"size": 300}, examples={"heldout": 0.3})
    assert (text(small)["vocab.size"], text(small)["examples.heldout"]) == (300, 0.3)
    given = text(recipe(vocab={"file": "v.txt"}))
    assert given["vocab.file"] is None and given["vocab.size"] == 800
    without = recipe(corpus=None, texts={"language": "hu"}, vocab={"file": "v.txt"})
    assert text(without)["texts"] is None and text(without)["corpus.filter.languages"] == ["hu", "en"]


def test_sentencepiece_is_replaced_only_where_it_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    given = recipe(vocab={"size": 900, "trainer": {"kind": "sentencepiece"}})
    for found, wanted in ((None, {"kind": "wordpiece"}), (object(), None)):
        monkeypatch.setattr(scaling, "find_spec", lambda name, found=found: found)
        assert text(given).get("vocab.trainer") == wanted and "vocab.trainer" not in text(recipe())


def test_labelled_texts_are_read_once_anyway() -> None:
    given = recipe({"objective": {"kind": "classification", "task": "sst2"}}, corpus=None)
    assert "examples.passes" not in text(given)


def test_the_network_is_the_smallest_of_its_family() -> None:
    assert values(scale_model(recipe())) == {"model.size": "tiny"}
    assert values(scale_model(recipe(model={"config": "c.json"}))) == {"model.config": None, "model.size": "tiny"}


TRAINING = {
    "train.checkpoint_every": 4,
    "train.evaluate_every": 4,
    "train.log_every": 1,
    "train.heldout_sequences": 8,
    "evaluate.max_sequences": 16,
}


@pytest.fixture
def able(monkeypatch: pytest.MonkeyPatch) -> list[Verdict]:
    """A machine that supports everything but what a test adds to the list."""
    verdicts: list[Verdict] = []
    for name in ("device", "precision", "instructions", "computing", "packages"):
        monkeypatch.setattr(scaling, name, lambda recipe, stages, mine=name == "device": verdicts if mine else [])
    monkeypatch.setattr(scaling, "rank_and_world", lambda: (0, 1))
    return verdicts


@each_row(
    ("train", "replaced"),
    [
        ({}, {}),
        ({"heldout_sequences": 4}, {"train.heldout_sequences": 4}),
        (
            {"init_from": "run/train"},
            {"train.init_from": None, "train.init_layers": None, "train.phases.0.restart_bias_correction": None},
        ),
        ({"objective": {"kind": "distillation", "teacher": "t"}}, {"train.objective": None}),
        ({"objective": {"kind": "classification", "task": "cola"}}, {}),
        (
            {"objective": {"kind": "classification", "task": "sst2"}},
            {"train.objective": {"kind": "classification", "task": "cola"}},
        ),
        ({"averaging": "ema"}, {}),
        ({"mirror": "s3://b/f"}, {"train.mirror": None}),
        ({"spot_notice": "azure"}, {"train.spot_notice": None}),
        ({"observers": ["tensorboard"]}, {"train.observers": None}),
        ({"engine": "ddp"}, {}),
        ({"guard": {"patience": 3}}, {}),
        ({"guard": {"spike": 10.0}}, {"train.guard": None}),
        ({"guard": {"loss_spike": 2.0}}, {"train.guard": None}),
        ({"engine": "fsdp"}, {"train.engine": None}),
        (
            {"phases": [PHASE, {**PHASE, "target_accuracy": 0.5}]},
            {"train.phases.1.target_accuracy": None},
        ),
    ],
)
@pytest.mark.usefixtures("able")
def test_what_a_short_run_cannot_have_is_left_out(train: dict[str, Any], replaced: dict[str, Any]) -> None:
    assert values(scale_training(recipe(train))) == {**TRAINING, **replaced}


@pytest.mark.usefixtures("able")
def test_scores_are_of_no_more_sequences_than_before() -> None:
    for most, wanted in ((0, 16), (5, 5), (99, 16)):
        found = values(scale_training(recipe(evaluate={"max_sequences": most})))
        assert found["evaluate.max_sequences"] == wanted


def test_an_engine_for_several_ranks_stays_where_there_are_several(
    able: list[Verdict], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scaling, "rank_and_world", lambda: (0, 2))
    assert "train.engine" not in values(scale_training(recipe({"engine": "fsdp"})))


def test_unsupported_settings_are_replaced_with_the_reason(able: list[Verdict]) -> None:
    able += [
        Verdict("error", "train.precision", "no units for it.", "Set it."),
        Verdict("error", "train.graph", "no compiler.", "Set it."),
        Verdict("error", "disk", "too small.", "Make room."),
        Verdict("warning", "train.attention", "slow.", "Set it."),
    ]
    found = {each.key: each for each in scale_training(recipe())}
    assert found["train.precision"] == ("train.precision", "fp32", "no units for it")
    assert found["train.graph"].value is None and "disk" not in found and "train.attention" not in found


@each_row(
    ("value", "said"),
    [
        (True, "true"),
        (1_000, "1,000"),
        (0.5, "0.5"),
        ("x", "x"),
        ({"kind": "ema", "decay": 0.9}, "ema"),
        ([{"path": "a"}, {"name": "b"}], "a, {'name': 'b'}"),
        (["a", "b"], "['a', 'b']"),
        (0, "0"),
        (False, "false"),
        (None, "nothing"),
        ([], "nothing"),
        ("", "nothing"),
    ],
)
def test_values_are_formatted_for_people(value: Any, said: str) -> None:
    assert format_value(value) == said


def test_what_a_command_line_sets_keeps_what_is_above_and_below_it(tmp_path: Path) -> None:
    """`train.phases.0` is one of `train.phases`, and no beginning of `train.phases.01` or `train.phases_of`."""
    (tmp_path / "mine.toml").write_text(
        "corpus.source = 'sample'\ncorpus.language = 'hu'\nmodel.size = 'base'\n"
        + 2 * "[[train.phases]]\nlength = 64\nbatch = 64\nlearning_rate = 1e-3\nsteps = 90\n"
    )
    made, replaced = load_tiny(tmp_path / "mine.toml", ["train.phases.0.steps=3", "train.log_every=5"])
    assert [each.steps for each in made.train.phases] == [3, 12] and made.train.log_every == 5
    assert [each.batch for each in made.train.phases] == [32, 32]
    assert not any(line.startswith(("train.phases.0.steps", "train.log_every")) for line in replaced)
    whole = json.dumps([{"length": 64, "batch": 64, "learning_rate": 1e-3, "steps": 90}]).replace(":", "=")
    made, _ = load_tiny(tmp_path / "mine.toml", [f"train.phases={whole}".replace('"', "")])
    assert (made.train.phases[0].steps, made.train.phases[0].batch) == (90, 64), "all of it is the user's"
