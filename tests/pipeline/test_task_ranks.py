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


def labelled(text: str) -> str:
    return json.dumps({"text": text, "label": [place for place in ("rome", "bonn") if place in text]}) + "\n"


TASKS = {
    "classes": ({"kind": "classification", "labels": ["rome", "bonn"]}, "jsonl", classified),
    "labels": ({"kind": "classification", "labels": ["rome", "bonn"], "several": True}, "jsonl", labelled),
    "tagging": ({"kind": "tagging", "entities": ["PER"]}, "conll", tagged),
    "span": ({"kind": "span", "stride": 2, "max_query": 3}, "jsonl", question),
    "choice": ({"kind": "choice", "first": 0}, "jsonl", choices),
}
NETWORKS = {
    family: {"kind": family, "size": size, "dropout": 0}
    for family, size in (("bert", "tiny"), ("distilbert", "mini"), ("modern", "tiny"))
}
"""Without dropout, whose masks differ between ranks and between the shapes of precisions."""


def drops(family: str, task: str) -> bool:
    """Whether the network has dropout that no key turns off: DistilBERT's, of the input of a classifier."""
    return family == "distilbert" and task not in ("tagging", "span")


def rows_of(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def prepared(task: str, folder: Path) -> tuple[Path, Path, dict[str, Any]]:
    """The examples and the vocabulary of a task, and the keys of its training."""
    objective, suffix, line = TASKS[task]
    data = folder / "data"
    data.mkdir()
    for name in ("train", "dev"):
        (data / f"{name}.{suffix}").write_text("".join(map(line, TEXTS)), encoding="utf-8")
    (folder / "vocab.txt").write_text("\n".join(ENTRIES) + "\n", encoding="utf-8")
    phase = {"length": 12, "batch": 7, "learning_rate": 5e-4, "steps": 6, "data": str(data)}
    values = {
        "vocab": {"file": str(folder / "vocab.txt"), "lower_case": True},
        "model": {"size": "tiny"},
        "optim": {"kind": "adamw"},
        "train": {"objective": objective, "phases": [phase]},
    }
    run(Recipe.from_values(Written(task, values, {})), folder / "made", ("vocab", "examples"), SILENT)
    return folder / "made" / "examples", folder / "made" / "vocab", {"objective": objective, "phases": [phase]}


@pytest.mark.parametrize("task", TASKS)
def test_two_ranks_train_a_task_as_one(task: str, tmp_path: Path) -> None:
    examples, vocab, train = prepared(task, tmp_path)
    small = {**train, "phases": [{**train["phases"][0], "micro_batch": 2}]}
    for family, model in NETWORKS.items():
        Training(family, train, model=model).run(examples, vocab, tmp_path / "one")
    train_on(
        2,
        [Training(family, small, model=model) for family, model in NETWORKS.items()],
        examples,
        vocab,
        tmp_path / "two",
    )
    for family in NETWORKS:
        alone, together = rows_of(tmp_path / "one" / family), rows_of(tmp_path / "two" / family)
        assert len(alone) == len(together) == 6
        for a, b in zip(alone, together, strict=True):
            assert (a["batch"], a["tokens_seen"]) == (b["batch"], b["tokens_seen"])
            learned = {name: value for name, value in a.items() if name.endswith(("_loss", "_accuracy"))}
            assert learned.keys() <= b.keys()
            if not drops(family, task):
                assert learned and {name: b[name] for name in learned} == pytest.approx(learned, rel=1e-4)


@pytest.mark.parametrize("task", TASKS)
def test_a_task_trains_in_bfloat16_as_in_float32(task: str, tmp_path: Path) -> None:
    examples, vocab, train = prepared(task, tmp_path)
    low = {"kind": "bf16", "allow_slow": True}
    for family, model in NETWORKS.items():
        Training(family, train, model=model).run(examples, vocab, tmp_path / "fp32")
        Training(family, {**train, "precision": low}, model=model).run(examples, vocab, tmp_path / "bf16")
        for a, b in zip(rows_of(tmp_path / "fp32" / family), rows_of(tmp_path / "bf16" / family), strict=True):
            assert a["batch"] == b["batch"]
            losses = {name: value for name, value in a.items() if name.endswith("_loss")}
            assert losses and {name: b[name] for name in losses} == pytest.approx(losses, rel=0.05)
