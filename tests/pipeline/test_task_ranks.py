"""Every task with files of its own: two ranks with small micro-batches train like one rank with whole batches."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.pipeline.ranks_of import Training, train_on
from tests.reference.teachers import SPECIALS

from bertwright import Recipe, run
from bertwright.core.log import SILENT
from bertwright.recipe_file import Written

pytestmark = pytest.mark.heavy

NAMES = ("ada", "bob", "eva", "jim", "pip", "tom")
ENTRIES = (*SPECIALS, *NAMES, "lives", "in", "rome", "bonn", ".", "who", "?")
TEXTS = [
    f"{name} lives in {place}{more}"
    for name in NAMES
    for place, more in (("rome", ""), ("bonn", "."), ("rome", " . bonn"))
]
"""Texts of different lengths."""


def tagged(text: str) -> str:
    return "\n".join(f"{word}\t{'B-PER' if word in NAMES else 'O'}" for word in text.split()) + "\n\n"


def question(text: str) -> str:
    name = text.split()[0]
    answers = {"text": [name], "answer_start": [0]} if text.endswith(("rome", "bonn")) else {"text": []}
    return json.dumps({"context": text, "question": "who ?", "answers": answers}) + "\n"


def choices(text: str) -> str:
    name = text.split()[0]
    others = [each for each in NAMES if each != name][: 1 + len(text) % 3]
    return json.dumps({"context": text, "choices": [*others, name], "label": len(others)}) + "\n"


def classified(text: str) -> str:
    return json.dumps({"text": text, "label": "rome" if "rome" in text else "bonn"}) + "\n"


TASKS = {
    "classification": ({"labels": ["rome", "bonn"]}, "jsonl", classified),
    "tagging": ({"entities": ["PER"]}, "conll", tagged),
    "span": ({"stride": 2, "max_query": 3}, "jsonl", question),
    "choice": ({"first": 0}, "jsonl", choices),
}


def rows_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("kind", TASKS)
def test_two_ranks_train_a_task_as_one(kind: str, tmp_path: Path) -> None:
    settings, suffix, line = TASKS[kind]
    data, objective = tmp_path / "data", {"kind": kind, **settings}
    data.mkdir()
    for name in ("train", "dev"):
        (data / f"{name}.{suffix}").write_text("".join(map(line, TEXTS)), encoding="utf-8")
    (tmp_path / "vocab.txt").write_text("\n".join(ENTRIES) + "\n", encoding="utf-8")
    phase = {"length": 12, "batch": 7, "learning_rate": 3e-3, "steps": 6, "data": str(data)}
    values = {
        "vocab": {"file": str(tmp_path / "vocab.txt"), "lower_case": True},
        "model": {"size": "tiny"},
        "optim": {"kind": "adamw"},
        "train": {"objective": objective, "phases": [phase]},
    }
    run(Recipe.from_values(Written(kind, values, {})), tmp_path / "made", ("vocab", "examples"), SILENT)
    examples, vocab = tmp_path / "made" / "examples", tmp_path / "made" / "vocab"
    one = Training("run", {"objective": objective, "phases": [phase]})
    two = Training("run", {"objective": objective, "phases": [{**phase, "micro_batch": 2}]})
    one.run(examples, vocab, tmp_path / "one")
    train_on(2, [two], examples, vocab, tmp_path / "two")
    alone, together = rows_of(tmp_path / "one" / "run"), rows_of(tmp_path / "two" / "run")
    assert len(alone) == len(together) == 6
    for a, b in zip(alone, together, strict=True):
        assert (a["batch"], a["tokens_seen"]) == (b["batch"], b["tokens_seen"])
        learned = {name: value for name, value in a.items() if name.endswith(("_loss", "_accuracy"))}
        assert learned and {name: b[name] for name in learned} == pytest.approx(learned, rel=1e-4)
