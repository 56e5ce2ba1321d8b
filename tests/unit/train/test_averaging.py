"""Averages of the weights: their numbers by hand, and in a training what is exported, scored, kept and continued."""

import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from pydantic import ValidationError
from safetensors.torch import load_file
from tests.rows import each_row
from tests.unit.train.conftest import PHASES
from tests.unit.train.test_run import Notes, metric_lines, same, weights

from bertwright.core.artifact import Artifact
from bertwright.core.errors import ArtifactError, RecipeError
from bertwright.train.averaging.averaging import Ema, Last
from bertwright.train.config import TrainConfig

pytestmark = pytest.mark.heavy

Train = Callable[..., Artifact]
KINDS: list[dict[str, Any]] = [
    {"kind": "ema", "decay": 0.4, "start": 0.25, "keep": "average"},
    {"kind": "last", "count": 3, "every": 4, "keep": "average"},
]
EMA_DECAYS = [2 / 11, 3 / 12, 4 / 13, 5 / 14, 6 / 15]
"""(1 + n) / (10 + n) for the first updates; from the fifth on, the decay of 0.4 is lower or equal."""


def every_weight(done: Artifact) -> list[dict[str, torch.Tensor]]:
    """Those of the checkpoints, one a step."""
    return [load_file(path) for path in sorted(done.path.glob("checkpoints/*/model.safetensors"))]


def test_the_moving_average_by_hand() -> None:
    ema = Ema(0.2, start=2)
    for step, value in enumerate([8.0, 13.0, 2.0, 100.0, 9.0], 1):
        ema.after({"w": torch.tensor([value])}, step, applied=step != 4)
    # From step 2 on: 13, then 2/11 · 13 + 9/11 · 2 = 4, nothing at the dropped step 4, then 0.2 · 4 + 0.8 · 9.
    assert ema.average()["w"].tolist() == pytest.approx([8.0])
    assert ema.description() == "an exponential moving average over 2 updates, 3.64 % of it the weights it began with"


@each_row("decay", [0.9, 0.999, 0.9999])
@each_row("updates", [10, 50, 1000, 20_000])
def test_a_slow_average_of_few_updates_forgets_first_weights(decay: float, updates: int) -> None:
    """Followed by a weight that is 1 before the first update and 0 from then on: what is left of it is their share."""
    ema = Ema(decay, start=0)
    for update in range(updates + 1):
        ema.after({"w": torch.tensor([float(update == 0)], dtype=torch.float64)}, update, applied=True)
    (share,) = ema.average()["w"].tolist()
    assert share <= 1e-4 and "less than 0.01 % of it the weights it began with" in ema.description()


def test_a_long_average_is_that_of_its_decay() -> None:
    """The mean age of what it averages is the smaller of a ninth of its updates and decay / (1 - decay)."""
    for updates, age in ((900, 90), (40_000, 99)):
        ema = Ema(0.99, start=0)
        for update in range(updates + 1):
            ema.after({"w": torch.tensor([float(update)], dtype=torch.float64)}, update, applied=True)
        assert updates - float(ema.average()["w"]) == pytest.approx(age, rel=0.02)


def test_the_mean_of_the_last_by_hand() -> None:
    last = Last(count=2, every=3)
    for step in range(1, 11):
        last.after({"w": torch.tensor([float(step)])}, step, applied=True)
    assert last.average()["w"].tolist() == [7.5] and set(last.state()) == {"6.w", "9.w"}


@pytest.mark.parametrize("average", [Ema(0.5, start=2), Last(count=2, every=3)], ids=["ema", "last"])
def test_an_average_that_was_loaded_needs_no_file_any_more(average: Ema | Last) -> None:
    """The tensors of a checkpoint are backed by its files, and reading one that is gone kills the process."""
    weights = {"w": torch.tensor([1.0, 2.0])}
    stored = {name: torch.tensor([3.0, 4.0]) for name in ({"w"} if isinstance(average, Ema) else {"6.w", "9.w"})}
    stored |= {"updates": torch.tensor(3)} if isinstance(average, Ema) else {}
    average.load(stored, weights)
    for tensor in stored.values():
        tensor.zero_()
    assert average.average()["w"].tolist() == [3.0, 4.0]


@pytest.mark.parametrize("averaging", KINDS, ids=lambda a: a["kind"])
def test_averaging_does_not_change_training(train: Train, averaging: dict[str, Any]) -> None:
    often = {"checkpoint_every": 1, "keep_checkpoints": 100}
    plain, averaged = train("plain", **often), train("averaged", averaging=averaging, **often)
    steps = every_weight(plain)
    assert len(steps) == 18 and all(same(a, b) for a, b in zip(steps, every_weight(averaged), strict=True))
    assert metric_lines(plain.path) == metric_lines(averaged.path)
    got = weights(averaged)
    for name, tensor in got.items():
        series = np.stack([step[name].double().numpy() for step in steps])
        if averaging["kind"] == "last":
            expected = series[[7, 11, 15]].mean(0)
        else:
            expected = series[4]  # of step 5, the first at or after a quarter of 18
            for update, value in enumerate(series[5:]):
                decay = EMA_DECAYS[update] if update < 5 else 0.4
                expected = decay * expected + (1 - decay) * value
        np.testing.assert_allclose(tensor.numpy(), expected, rtol=1e-5, atol=1e-7)
    assert averaged.fingerprint != plain.fingerprint


def test_the_time_of_the_average_is_time_of_its_step(train: Train, monkeypatch: pytest.MonkeyPatch) -> None:
    after = Ema.after

    def slow(*arguments: Any) -> None:
        time.sleep(0.02)
        after(*arguments)

    monkeypatch.setattr(Ema, "after", slow)
    done = train(averaging=KINDS[0])
    spent = json.loads((done.path / "metrics.jsonl").read_text().splitlines()[-1])["seconds"]
    assert spent >= 18 * 0.02, "a budget of time would be overdrawn by it"


@pytest.mark.parametrize("averaging", KINDS, ids=lambda a: a["kind"])
def test_the_average_is_what_is_scored_at_the_end(train: Train, averaging: dict[str, Any]) -> None:
    notes = Notes()
    done = train(averaging=averaging, log=notes)
    told = done.counts["averaging"]
    assert told["kind"] == averaging["kind"] and told["kept"] == "average"
    assert told["heldout"] == done.counts["heldout"]
    assert told["trained_heldout"]["mlm_loss"] == metric_lines(done.path)[-1]["heldout_mlm_loss"]
    assert done.counts["heldout"]["mlm_loss"] != told["trained_heldout"]["mlm_loss"]
    # Scored by another training, which begins with it and does not move.
    still = {**PHASES[1], "steps": 1, "learning_rate": 1e-30}
    again = train("again", phases=[still], init_from=done.path)
    assert again.counts["heldout"]["mlm_loss"] == pytest.approx(done.counts["heldout"]["mlm_loss"], rel=1e-6)
    losses = [told[scores]["mlm_loss"] for scores in ("heldout", "trained_heldout")]
    assert told["better"] == ("average" if losses[0] <= losses[1] else "last")
    (line,) = [line for line in notes.lines if "average of the weights" in line]
    scored = f"scores mlm_loss {losses[0]:.3f} and the last weights {losses[1]:.3f}: the model has the average"
    assert scored in line and told["description"] in line
    assert ("keep=better it would have the last weights" in line) == (told["better"] == "last")
    state = json.loads((done.path / "checkpoints" / "step-000000018" / "state.json").read_bytes())
    assert state["heldout"] == told["trained_heldout"]


@pytest.mark.parametrize("averaging", KINDS, ids=lambda a: a["kind"])
@pytest.mark.parametrize("row", [1, 4, 8])
def test_crashed_and_continued_it_ends_bit_identical(train: Train, averaging: dict[str, Any], row: int) -> None:
    undisturbed = train("undisturbed", averaging=averaging)
    with pytest.raises(RuntimeError):
        train("crashed", averaging=averaging, log=Notes(kill_at_row=row, error=RuntimeError))
    continued = train("crashed", averaging=averaging)
    assert same(weights(continued), weights(undisturbed))
    assert continued.counts["heldout"] == undisturbed.counts["heldout"]
    assert continued.fingerprint == undisturbed.fingerprint


def test_the_model_has_the_better_of_average_and_last_weights(train: Train) -> None:
    """With a high rate to the end the average is, in the middle of a descent the last ones are."""
    often = {"checkpoint_every": 1, "keep_checkpoints": 100}
    wide = {"kind": "last", "count": 18, "every": 1}
    for rate, averaging in ((1e-2, wide), (0.3, wide), (1e-2, "ema"), (0.3, "ema")):
        phases = [PHASES[0] | {"learning_rate": rate, "schedule": "constant", "warmup": 0}]
        name = f"{rate}-{averaging if averaging == 'ema' else 'last'}"
        done = train(name, phases=phases, averaging=averaging, **often)
        plain = train(f"{name}-plain", phases=phases)
        told = done.counts["averaging"]
        average, last = (told[scores]["mlm_loss"] for scores in ("heldout", "trained_heldout"))
        assert last == plain.counts["heldout"]["mlm_loss"] and average != last
        assert done.counts["heldout"]["mlm_loss"] == min(average, last)
        assert told["better"] == told["kept"] == ("average" if average < last else "last")
        assert same(weights(done), weights(plain)) == (told["kept"] == "last")


def test_an_average_cannot_be_taken_up_later(train: Train) -> None:
    train()
    with pytest.raises(ArtifactError, match=r"train.averaging.*Restore these settings"):
        train(averaging="ema")


def test_without_one_checkpoints_are_as_they_were(train: Train) -> None:
    assert not list(train().path.glob("checkpoints/*/average.safetensors"))


def test_an_end_before_the_first_weights_to_average_is_refused(train: Train) -> None:
    phases, averaging = [PHASES[0]], {"kind": "last", "every": 10}
    with pytest.raises(RuntimeError):
        train(phases=phases, averaging=averaging, log=Notes(kill_at_row=5, error=RuntimeError))
    with pytest.raises(RecipeError, match=r"train.averaging.every 10 is more than the 8 steps of all phases"):
        train(phases=[{**PHASES[0], "end_after": 8}], averaging=averaging)
    assert train(phases=phases, averaging=averaging).counts["averaging"]["kind"] == "last"


@pytest.mark.parametrize(
    ("phase", "averaging"),
    [
        ({"end_after": 6}, {"kind": "ema", "start": 0.75}),
        ({"hours": 1e-6 / 3600, "steps": 5000}, {"kind": "last", "every": 5}),
    ],
    ids=["the end was moved", "time was up"],
)
def test_a_training_without_an_average_reports_it(
    train: Train, phase: dict[str, Any], averaging: dict[str, Any]
) -> None:
    notes, phases = Notes(), [PHASES[0] | phase]
    plain, done = train("plain", phases=phases), train("averaged", phases=phases, averaging=averaging, log=notes)
    assert "averaging" not in done.counts and done.counts["steps"] in (1, 6)
    assert [line for line in notes.lines if "average" in line] == [
        "train: no average of the weights was made, because training ended before its first step: the model "
        "has the last weights"
    ]
    if "hours" not in phase:  # no two of these have the same rates
        assert same(weights(done), weights(plain)) and done.counts["heldout"] == plain.counts["heldout"]


def test_a_moved_end_does_not_move_the_average_start(train: Train) -> None:
    averaging = {"kind": "ema", "decay": 0.2, "start": 0.5, "keep": "average"}
    often = {"checkpoint_every": 1, "keep_checkpoints": 100}
    done = train(phases=[PHASES[0] | {"end_after": 8}], averaging=averaging, **often)
    steps = every_weight(done)
    for name, tensor in weights(done).items():
        expected = steps[5][name].double()  # of step 6, the first at or after half of 12
        for step, decay in zip(steps[6:], (2 / 11, 0.2), strict=True):
            expected = decay * expected + (1 - decay) * step[name].double()
        torch.testing.assert_close(tensor.double(), expected, rtol=1e-5, atol=1e-7)


def test_a_share_of_steps_that_time_leaves_open_is_refused() -> None:
    phases = [PHASES[0], PHASES[1] | {"hours": 1}]
    with pytest.raises(
        ValidationError, match=r"averaging.start 0.5 is a share .* phases.1.hours leaves their number open; set aver"
    ):
        TrainConfig.model_validate({"phases": phases, "averaging": {"kind": "ema", "start": 0.5}})
    for averaging in ("ema", "last"):
        TrainConfig.model_validate({"phases": phases, "averaging": averaging})


@each_row(
    ("wrong", "said"),
    [
        ("swa", r"'none', 'ema', 'last'"),
        ({"kind": "ema", "decay": 1}, "less than 1"),
        ({"kind": "ema", "start": 1}, "less than 1"),
        ({"kind": "last", "count": 0}, "greater than or equal to 1"),
        ({"kind": "last", "decay": 0.9}, "Extra inputs"),
        ({"kind": "none", "count": 2}, "Extra inputs"),
    ],
)
def test_wrong_values_are_refused(wrong: Any, said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        TrainConfig.model_validate({"phases": PHASES, "averaging": wrong})
