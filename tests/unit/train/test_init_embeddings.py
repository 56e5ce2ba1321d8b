"""Token embeddings that start from the neighbours of entries in the text."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from tests.conftest import Prepared
from tests.pipeline.ranks_of import Training, train_on
from tests.rows import each_row
from tests.unit.train.conftest import MODEL, PHASES
from tests.unit.train.test_run import Notes, metric_lines, same, weights

from bertwright.contradictions.sections import unused_with_own_files
from bertwright.core.artifact import Artifact
from bertwright.core.errors import Interrupted, RecipeError
from bertwright.core.log import SILENT
from bertwright.evaluate.config import EvaluateConfig
from bertwright.examples.config import ExamplesConfig, MaskingConfig, MicroBatching, PlanSet
from bertwright.examples.cooccurrence import read_text
from bertwright.examples.loader import LoaderSettings
from bertwright.examples.planned import open_loader
from bertwright.examples.vocabulary import Vocabulary
from bertwright.model.bert.network import BertConfig
from bertwright.model.model import build_model
from bertwright.train.config import TrainConfig
from bertwright.train.ranks.ranks import Ranks
from bertwright.train.setup import initial_weights
from bertwright.train.setup.initial_weights import LOGIT_STD, embeddings, mutual_information, start_from_text

pytestmark = pytest.mark.heavy

Train = Callable[..., Artifact]
UNSEEN = (0, 4, 39)
FROM_TEXT: dict[str, Any] = {"init_embeddings": "text"}


def counts(rows: int, columns: int) -> NDArray[np.float32]:
    """Counts of which most are 0; three rows and the last column have none."""
    drawn = np.random.default_rng(3).poisson(0.7, (rows, columns)).astype(np.float32)
    drawn[list(UNSEEN)], drawn[:, -1] = 0, 0
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


@each_row(("width", "rank"), [(8, 8), (64, 30)])
def test_embeddings_keep_the_largest_singular_values(width: int, rank: int) -> None:
    """Rotation changes no product of two rows. With few columns, all singular values are kept."""
    given = counts(40, 30)
    u, s, _ = np.linalg.svd(information(given), full_matrices=False)
    products = (u[:, :rank] * s[:rank]) @ u[:, :rank].T
    made = embeddings(given, width, seed=1)
    assert made.shape == (40, width)
    seen = [row for row in range(40) if row not in UNSEEN]
    assert not made[list(UNSEEN)].any(), "to rounding they would be like the seen ones after a layer norm"
    assert float(made[seen].std()) == pytest.approx(LOGIT_STD / width**0.5, rel=1e-5)
    scaled = (made @ made.T).double().numpy()
    scaled *= np.linalg.norm(products) / np.linalg.norm(scaled)
    np.testing.assert_allclose(scaled, products, atol=0.02 * products.max())


def test_they_depend_on_the_seed_alone() -> None:
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


def test_absent_entries_keep_their_random_weights(prepared: Prepared) -> None:
    settings = LoaderSettings(PHASES[0]["length"], MaskingConfig(), 8, MicroBatching(8), 1, "0")
    loader = open_loader(prepared.examples, PlanSet(length=settings.length), settings)
    config = BertConfig.model_validate(MODEL | {"vocab_size": 208})
    torch.manual_seed(1)
    model = build_model(config)
    drawn = model.encoder.token_weight.detach().clone()
    start_from_text(model, loader, Ranks(), 1, SILENT)
    made, text = model.encoder.token_weight.detach(), read_text(loader, 10**9)
    occurs = torch.zeros(208, dtype=torch.bool)
    occurs[torch.from_numpy(text.ids_T).long()] = True
    mask = Vocabulary.open(prepared.examples).mask
    assert torch.equal(made[~occurs], drawn[~occurs]) and not occurs[mask] and not occurs[200:].any()
    assert not (made[occurs] == drawn[occurs]).any()
    assert float(made[occurs].std()) == pytest.approx(LOGIT_STD / 16**0.5, rel=1e-5)


def test_the_time_that_it_takes_is_training_but_not_of_the_phase(train: Train, monkeypatch: pytest.MonkeyPatch) -> None:
    def slow(*given: Any) -> float:
        return start_from_text(*given) + 3000

    monkeypatch.setattr(initial_weights, "start_from_text", slow)
    notes = Notes()
    counts = train("done", **FROM_TEXT, phases=[{**PHASES[0], "warmup": 0.5, "hours": 1}], log=notes).counts
    assert counts["steps"] == 12 and 3000 <= counts["train_seconds"] < 3060
    assert notes.rows[0]["learning_rate"] < 1e-3, "the warm-up, of half an hour, begins with the first step"
    (said,) = [line for line in notes.lines if "embeddings" in line]
    assert re.fullmatch(r"train: token embeddings from the neighbours of [\d,]+ tokens, in \d+ s", said)


@each_row("given", [np.zeros((5, 4), np.float32), np.ones((5, 4), np.float32)])
def test_a_text_that_says_nothing_of_neighbours_is_refused(given: NDArray[np.float32]) -> None:
    """Scaling nothing to a standard deviation would make weights that are no numbers."""
    text = "train.init_embeddings text found no entries .* more often than by chance; give more text, or set"
    with pytest.raises(RecipeError, match=text):
        embeddings(given, 8, seed=1)


@pytest.mark.parametrize("precision", [{"kind": "bf16", "weights": "bf16", "allow_slow": True}])
def test_a_copy_in_low_precision_has_them_too(train: Train, precision: dict[str, Any]) -> None:
    phase = {**PHASES[0], "steps": 2}
    low, full = (train(f"{n}", **FROM_TEXT, phases=[phase], precision=p) for n, p in enumerate((precision, "fp32")))
    first = [metric_lines(each.path)[0]["mlm_loss"] for each in (low, full)]
    assert first[0] == pytest.approx(first[1], rel=1e-2) and first[0] != first[1]


def test_two_ranks_start_with_the_same_embeddings(prepared: Prepared, tmp_path: Path) -> None:
    places = prepared.examples.path, prepared.vocab.path
    train_on(1, [Training("alone", {**FROM_TEXT, "engine": "single"})], *places, tmp_path / "one")
    every = [Training(engine, {**FROM_TEXT, "engine": engine, "compare_ranks_every": 1}) for engine in ("ddp", "fsdp")]
    train_on(2, every, *places, tmp_path / "two")
    expected = metric_lines(tmp_path / "one" / "alone")
    for training in every:
        found = metric_lines(tmp_path / "two" / training.name)
        assert [row["mlm_loss"] for row in found] == pytest.approx([row["mlm_loss"] for row in expected], rel=1e-5)


def test_rows_of_pieces_need_a_network() -> None:
    text = "init_embeddings pieces makes rows from those of another network: set init_from to that network"
    with pytest.raises(RecipeError, match=text):
        TrainConfig(phases=[PHASES[0]], init_embeddings="pieces")


def test_a_classifier_has_no_running_text() -> None:
    config = TrainConfig(phases=[PHASES[0]], objective={"kind": "classification", "task": "cola"}, **FROM_TEXT)
    said = dict(unused_with_own_files(config, EvaluateConfig(), ExamplesConfig()))
    assert said["train.init_embeddings"] == (
        "text is for pre-training; a classifier keeps the vocabulary of train.init_from; leave it out"
    )
