"""What a network in training is asked at every checkpoint: recorded exactly, and without a trace in the training."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import Prepared
from tests.rows import each_row
from tests.unit.train.test_run import Notes, same, weights

from bertwright.core.artifact import Artifact
from bertwright.core.errors import Interrupted, RecipeError
from bertwright.evaluate.config import EvaluateConfig
from bertwright.model.saved import load_network
from bertwright.tasks.pretraining.questions import questions_of
from bertwright.transfer.parts import GUESSES

Train = Callable[..., Artifact]
ASKED = EvaluateConfig(cloze=("The [MASK=river] holds the lamp.", "The baker [MASK] the wheel."))


def rows(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / GUESSES).read_text(encoding="utf-8").splitlines()]


def test_every_checkpoint_has_its_answers_and_the_training_is_the_same(train: Train, prepared: Prepared) -> None:
    plain, asked = train("plain", dropout=0.3), train("asked", dropout=0.3, asked=ASKED)
    assert same(weights(plain), weights(asked)) and plain.fingerprint == asked.fingerprint
    assert not (plain.path / GUESSES).exists()
    found = rows(asked.path)
    assert [row["total_steps"] for row in found] == [0, 4, 8, 12, 16, 18]
    assert [(row["phase"], row["step"]) for row in found[3:]] == [(0, 12), (1, 4), (1, 6)]
    # The last answers are those of the finished model.
    model = load_network(asked.path / "model")
    questions = questions_of(prepared.examples, prepared.vocab, ASKED, 32)
    assert found[-1]["answers"] == json.loads(json.dumps(questions.answer(model)))
    first = found[0]["answers"]
    assert [answer["text"] for answer in first] == ["The [MASK] holds the lamp.", "The baker [MASK] the wheel."]
    assert [answer["gold"] for answer in first] == ["river", None]
    assert all(len(answer["top"]) == 5 for answer in first)
    assert first != found[-1]["answers"]


@each_row("killed", [1, 3, 5, 8])
def test_a_killed_training_ends_with_the_same_answers(train: Train, killed: int) -> None:
    whole = train("whole", asked=ASKED)
    with pytest.raises(RuntimeError):
        train(f"killed{killed}", asked=ASKED, log=Notes(kill_at_row=killed, error=RuntimeError))
    with (whole.path.with_name(f"killed{killed}") / GUESSES).open("ab") as file:
        # As kill -9 leaves them: rows of steps that no checkpoint has, and half a row.
        file.write(json.dumps({"total_steps": 17, "answers": []}).encode() + b"\nnull\n" + b'{"total_steps": 3')
    killed_run = train(f"killed{killed}", asked=ASKED)
    assert (killed_run.path / GUESSES).read_bytes() == (whole.path / GUESSES).read_bytes()
    assert same(weights(whole), weights(killed_run))


def test_a_stopped_training_ends_with_the_same_answers(train: Train) -> None:
    whole = train("whole", asked=ASKED)
    with pytest.raises(Interrupted):
        train("stopped", asked=ASKED, log=Notes(kill_at_row=3))
    assert (train("stopped", asked=ASKED).path / GUESSES).read_bytes() == (whole.path / GUESSES).read_bytes()


def test_without_lines_of_the_recipe_it_is_asked_held_out_sentences(train: Train) -> None:
    found = rows(train(asked=EvaluateConfig(samples=3)).path)
    assert {answer["source"] for row in found for answer in row["answers"]} == {"held-out"}
    assert {len(row["answers"]) for row in found} == {3}


def test_nothing_is_asked_where_the_recipe_has_nothing_to_ask(train: Train) -> None:
    assert not (train(asked=EvaluateConfig(samples=0)).path / GUESSES).exists()


def test_a_line_that_is_too_long_is_refused_before_the_first_step(train: Train, tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="evaluate.cloze: .* has .* tokens, but the model reads 32"):
        train("long", asked=EvaluateConfig(cloze=("[MASK]" + " river" * 40,)))
    assert not (tmp_path / "long" / "metrics.jsonl").exists()
