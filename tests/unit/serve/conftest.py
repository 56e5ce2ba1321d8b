"""Small models of each task, served in a thread."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.served import served
from tests.unit.export.tiny import publish

from bertwright.page.server import Listener
from bertwright.serve.app import Limits, make_app
from bertwright.serve.load import load_models
from bertwright.serve.served import Served

KINDS: dict[str, tuple[str, dict[str, Any]]] = {
    "masked": ("ForMaskedLM", {}),
    "bare": ("", {}),
    "classifier": ("ForSequenceClassification", {"labels": ("ja", "nem", "talán")}),
    "several": (
        "ForSequenceClassification",
        {"labels": ("a", "b", "c"), "problem_type": "multi_label_classification"},
    ),
    "tagger": ("ForTokenClassification", {"labels": ("O", "B-LOC", "I-LOC")}),
    "answerer": ("ForQuestionAnswering", {}),
    "chooser": ("ForMultipleChoice", {}),
}


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A folder for each kind of model."""
    root = tmp_path_factory.mktemp("served")
    return {name: publish(root / name, "bert", kind, **more).folder for name, (kind, more) in KINDS.items()}


@pytest.fixture(scope="session")
def models(folders: dict[str, Path]) -> dict[str, Served]:
    """The models of these folders."""
    return {model.name: model for model in load_models(list(folders.values()))}


@pytest.fixture(scope="module")
def listener(models: dict[str, Served]) -> Iterator[Listener]:
    """A server of all of them; the first is the masked one."""
    with served(make_app(list(models.values()), Limits())) as found:
        yield found
