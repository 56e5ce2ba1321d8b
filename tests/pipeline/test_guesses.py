"""What the network is asked at checkpoints, on several ranks: written once, and computed by all where each holds a part
of the weights."""

import json
from pathlib import Path

import pytest
from tests.conftest import Prepared
from tests.pipeline.engines import section
from tests.pipeline.ranks_of import Training, train_on

from bertwright.evaluate.config import EvaluateConfig
from bertwright.model.saved import load_network
from bertwright.tasks.pretraining.questions import questions_of
from bertwright.transfer.parts import GUESSES

ASKED = EvaluateConfig(cloze=("The [MASK=river] holds the lamp.",))


@pytest.mark.parametrize("engine", ["ddp", "fsdp"])
def test_several_ranks_answer_as_their_model_does(engine: str, prepared: Prepared, tmp_path: Path) -> None:
    training = Training("run", {"engine": section(engine)}, asked=ASKED)
    train_on(2, [training], prepared.examples.path, prepared.vocab.path, tmp_path)
    rows = [json.loads(line) for line in (tmp_path / "run" / GUESSES).read_text(encoding="utf-8").splitlines()]
    assert [row["total_steps"] for row in rows] == [0, 10, 12, 20]
    model = load_network(tmp_path / "run" / "model")
    expected = questions_of(prepared.examples, prepared.vocab, ASKED, 32).answer(model)
    for (answer, wanted), key in zip([(rows[-1]["answers"], expected)] * 2, ("token", "probability"), strict=True):
        found, right = ([top[key] for top in each[0]["top"]] for each in (answer, wanted))
        assert found == (right if key == "token" else pytest.approx(right, rel=1e-5))
