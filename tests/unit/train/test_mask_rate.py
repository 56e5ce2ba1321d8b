"""A mask rate that falls within a phase, seen by training: the steps have it, also after a stop, and scores do not."""

from collections.abc import Callable
from typing import Any

import pytest
from tests.unit.train.conftest import PHASES
from tests.unit.train.test_run import Notes, metric_lines, same, weights

from bertwright.core.artifact import Artifact
from bertwright.core.errors import Interrupted
from bertwright.examples.batch import MicroBatch
from bertwright.examples.config import MaskingConfig
from bertwright.train import run as loop
from bertwright.train.settings import phases

Train = Callable[..., Artifact]
PHASE: dict[str, Any] = {**PHASES[0], "length": 32, "masking": {"rate": [[0, 0.3], [6, 0.15]]}}


@pytest.fixture
def predicted(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The predictions of each step that is taken, as a share of its tokens."""
    shares: list[float] = []
    real = loop.train_step

    def noting(trained: Any, batches: Any, totals: Any, update: Any) -> Any:
        shares.append(totals["mlm"] / sum(len(batch.token_ids) for batch in batches))
        return real(trained, batches, totals, update)

    monkeypatch.setattr(loop, "train_step", noting)
    return shares


def test_mask_rates_follow_the_steps_also_after_a_stop(train: Train, predicted: list[float]) -> None:
    undisturbed = train("undisturbed", phases=[PHASE])
    assert all(share == pytest.approx(0.3, abs=0.04) for share in predicted[:6])
    assert all(share == pytest.approx(0.15, abs=0.04) for share in predicted[6:]) and len(predicted) == 12
    whole = list(predicted)
    for row in (1, 2, 3, 4):  # stopped before, at and after the change
        predicted.clear()
        with pytest.raises(Interrupted):
            train(f"stopped {row}", phases=[PHASE], log=Notes(kill_at_row=row))
        continued = train(f"stopped {row}", phases=[PHASE])
        assert predicted == whole, "no step is taken twice, and each with its rate"
        assert same(weights(continued), weights(undisturbed))
        assert [r["batch"] for r in metric_lines(continued.path)][-1] == metric_lines(undisturbed.path)[-1]["batch"]


def test_scores_of_all_steps_are_of_the_same_masks(train: Train, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[int] = []
    real = phases.heldout_batches

    def noting(*arguments: Any) -> list[MicroBatch]:
        batches = list(real(*arguments))
        drawn.append(sum(batch.counts.predictions for batch in batches))
        assert arguments[2:4] == (MaskingConfig.model_validate(PHASE["masking"]).most(32), 0.3)
        return batches

    monkeypatch.setattr(phases, "heldout_batches", noting)
    done = train(phases=[PHASE], evaluate_every=3)
    assert len([row for row in metric_lines(done.path) if "heldout_mlm_loss" in row]) == 4
    assert len(drawn) == 1, "drawn once for a phase"
