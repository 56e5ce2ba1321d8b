"""Token embeddings that start from the neighbours of entries in the text."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from tests.conftest import Prepared
from tests.pipeline.ranks_of import Training, train_on
from tests.unit.train.conftest import PHASES
from tests.unit.train.test_run import Notes, metric_lines, same, weights

from bertwright.contradictions.classification import of_classification
from bertwright.core.artifact import Artifact
from bertwright.core.errors import Interrupted, RecipeError
from bertwright.evaluate.config import EvaluateConfig
from bertwright.examples.config import ExamplesConfig
from bertwright.train import init_embeddings
from bertwright.train.config import TrainConfig
from bertwright.train.init_embeddings import LOGIT_STD, embeddings, mutual_information

Train = Callable[..., Artifact]
FROM_TEXT: dict[str, Any] = {"init_embeddings": "text"}


def counts(rows: int, columns: int) -> NDArray[np.float32]:
    """Counts of which most are 0; the last row and the last column have none."""
    drawn = np.random.default_rng(3).poisson(0.7, (rows, columns)).astype(np.float32)
    drawn[-1], drawn[:, -1] = 0, 0
    return drawn


def information(given: NDArray[np.float32]) -> NDArray[np.float64]:
    """The definition, cell by cell."""
    rows, columns = given.sum(1), given.sum(0) ** 0.75
    expected = np.zeros(given.shape)
    for i, j in zip(*np.nonzero(given), strict=True):
        expected[i, j] = max(0.0, float(np.log(given[i, j] / rows[i] / (columns[j] / columns.sum()))))
    return expected


def test_information_is_that_of_the_definition() -> None:
    given = counts(40, 30)
    expected = information(given)
    np.testing.assert_allclose(mutual_information(given), expected, atol=1e-5)


@pytest.mark.parametrize(("width", "rank"), [(8, 8), (64, 30)])
def test_embeddings_have_the_products_of_the_largest_singular_values(width: int, rank: int) -> None:
    """Rotation changes no product of two rows. With few columns, all singular values are kept."""
    given = counts(40, 30)
    u, s, _ = np.linalg.svd(information(given), full_matrices=False)
    products = (u[:, :rank] * s[:rank]) @ u[:, :rank].T
    made = embeddings(given, width, seed=1)
    assert made.shape == (40, width)
    assert not made[-1].any() and float(made[:-1].std()) == pytest.approx(LOGIT_STD / width**0.5, rel=1e-5)
    scaled = (made @ made.T).double().numpy()
    scaled *= np.linalg.norm(products) / np.linalg.norm(scaled)
    np.testing.assert_allclose(scaled, products, atol=0.02 * products.max())


def test_the_seed_alone_rotates_them() -> None:
    torch.manual_seed(7)
    before = torch.get_rng_state()
    first, again, other = (embeddings(counts(40, 30), 8, seed) for seed in (1, 1, 2))
    assert torch.equal(first, again) and not torch.allclose(first, other, atol=0.01)
    assert torch.equal(torch.get_rng_state(), before)


def test_training_resumes_bit_identical(train: Train) -> None:
    done, drawn = train("done", **FROM_TEXT), train("drawn")
    assert done.fingerprint != drawn.fingerprint and not same(weights(done), weights(drawn))
    with pytest.raises(Interrupted):
        train("stopped", **FROM_TEXT, log=Notes(kill_at_row=2))
    assert same(weights(train("stopped", **FROM_TEXT)), weights(done))


def test_the_time_that_it_takes_is_that_of_the_first_phase(train: Train, monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(*given: Any) -> torch.Tensor:
        time.sleep(1)
        return embeddings(*given)

    monkeypatch.setattr(init_embeddings, "embeddings", slow)
    notes = Notes()
    phase = {**PHASES[0], "hours": 1 / 3600}
    assert train("done", **FROM_TEXT, phases=[phase], log=notes).counts["steps"] == 0
    (said,) = [line for line in notes.lines if "embeddings" in line]
    assert said.startswith("train: token embeddings from the neighbours of ") and said.endswith(" tokens, in 1 s")


def test_two_ranks_start_with_the_same_embeddings(prepared: Prepared, tmp_path: Path) -> None:
    places = prepared.examples.path, prepared.vocab.path
    train_on(1, [Training("alone", {**FROM_TEXT, "engine": "single"})], *places, tmp_path / "one")
    every = [Training(engine, {**FROM_TEXT, "engine": engine, "compare_ranks_every": 1}) for engine in ("ddp", "fsdp")]
    train_on(2, every, *places, tmp_path / "two")
    expected = metric_lines(tmp_path / "one" / "alone")
    for training in every:
        found = metric_lines(tmp_path / "two" / training.name)
        assert [row["mlm_loss"] for row in found] == pytest.approx([row["mlm_loss"] for row in expected], rel=1e-5)


def test_embeddings_from_two_places_are_refused() -> None:
    text = "init_embeddings text makes embeddings for random weights, but init_from other has embeddings of its own"
    with pytest.raises(RecipeError, match=text):
        TrainConfig(phases=[PHASES[0]], init_from="other", **FROM_TEXT)


def test_a_classifier_has_no_running_text() -> None:
    config = TrainConfig(phases=[PHASES[0]], objective={"kind": "classification", "task": "cola"}, **FROM_TEXT)
    said = dict(of_classification(config, EvaluateConfig(), ExamplesConfig()))
    assert said["train.init_embeddings"] == "text is for pre-training, from running text; leave it out"
