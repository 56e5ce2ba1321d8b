"""ONNX Runtime gives the answers that torch gives, whatever the head, also where there are no weights."""

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bertwright.core.errors import RecipeError
from bertwright.export.runtimes.onnx_runtime import write_onnx
from bertwright.export.runtimes.runtime import Published
from bertwright.serve.load import How, load_models
from bertwright.serve.served import Guess, Served

pytest.importorskip("onnxruntime")
pytest.importorskip("onnx")

TEXTS = ["A folyó a [MASK].", "[MASK] old mill [MASK] by the river " * 5, "[MASK]", "Az árvíztűrő [MASK] Győrben."]
QUESTIONS: dict[str, list[Any]] = {
    "classifier": ["A Duna.", ("A Duna", "old mill " * 9), "An"],
    "several": ["A Duna.", "An old mill stands by"],
    "tagger": [["A", "Duna"], ["An", "old", "mill", "stands", "by", "the", "river"]],
    "answerer": [("Mi?", "A folyó a Duna."), ("What?", "An old mill stands by the river. " * 9)],
    "chooser": [("A", ["x", "old mill"], ["x", "old mill"]), ("B", ["x", "y", "z"], ["x", "y", "z"])],
}


def numbers(value: Any) -> list[float]:
    """All numbers in an answer, in order."""
    if isinstance(value, dict):
        return [number for each in value.values() for number in numbers(each)]
    if isinstance(value, list | tuple):
        return [number for each in value for number in numbers(each)]
    return [float(value)] if isinstance(value, float | int) else []


def test_all_heads_answer_as_in_torch(folders: dict[str, Path], models: dict[str, Served]) -> None:
    in_onnx = {model.name: model for model in load_models(list(folders.values()), how=How("onnx"))}
    for name, model in in_onnx.items():
        theirs = models[name]
        lacking = {"encode", "similar"} if name in QUESTIONS else set()
        assert set(model.tasks) == set(theirs.tasks) - lacking
        if name in QUESTIONS:
            ours, expected = (each.answer(QUESTIONS[name]) for each in (model, theirs))
            assert numbers(ours) == pytest.approx(numbers(expected), abs=1e-4), name
        else:
            vectors = [[each.vector for each in of.encode(TEXTS)] for of in (model, theirs)]
            assert np.allclose(*vectors, atol=1e-4)
            assert model.neighbours([("river", 3)]) == theirs.neighbours([("river", 3)])
    guesses = [Guess(text, 3) for text in TEXTS]
    ours, expected = (of["masked"].guess(guesses) for of in (in_onnx, models))
    assert [[dict(each.words).keys() for each in of] for of in ours] == [
        [dict(each.words).keys() for each in of] for of in expected
    ]
    assert numbers(ours) == pytest.approx(numbers(expected), abs=1e-4)


def test_a_folder_without_weights_is_served_by_its_onnx_file(
    folders: dict[str, Path], models: dict[str, Served], tmp_path: Path
) -> None:
    for name in ("masked", "classifier", "answerer"):
        bare = tmp_path / name
        shutil.copytree(folders[name], bare, ignore=shutil.ignore_patterns("*.safetensors"))
        with pytest.raises(RecipeError, match="model.safetensors"):
            load_models([bare])
        (bare / "onnx").mkdir()
        write_onnx(Published(folders[name]), bare / "onnx" / "model.onnx", "float32")
        with pytest.raises(RecipeError, match="--precision is for torch, and .* has an ONNX file alone"):
            load_models([bare], how=How("", "bfloat16"))
        (model,) = load_models([bare])
        assert "neighbours" not in model.tasks
        if name == "masked":
            ours, expected = (of.guess([Guess(TEXTS[0], 3)]) for of in (model, models[name]))
        else:
            assert model.encoder.model.config.labels == models[name].encoder.model.config.labels
            ours, expected = (of.answer(QUESTIONS[name]) for of in (model, models[name]))
        assert numbers(ours) == pytest.approx(numbers(expected), abs=1e-4)


def test_options_that_would_have_no_effect_are_refused(folders: dict[str, Path]) -> None:
    folder = folders["masked"]
    with pytest.raises(RecipeError, match="--precision is for torch"):
        load_models([folder], how=How("onnx", "bfloat16"))
    with pytest.raises(RecipeError, match="there is no runtime 'onyx'"):
        load_models([folder], how=How("onyx"))
    with pytest.raises(RecipeError, match="served by torch, onnx"):
        load_models([folder], how=How("gguf"))
    with pytest.raises(RecipeError, match="--checkpoint takes the checkpoints of one run"):
        load_models([folder], [3])
