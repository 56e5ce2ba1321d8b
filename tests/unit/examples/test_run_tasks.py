"""The tasks of the stage are shared by processes without one left out or done twice, and files come before shards."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.rows import each_row

from bertwright.core.artifact import Artifact, open_artifact
from bertwright.core.files import read_json
from bertwright.core.work_split import WorkSplit
from bertwright.examples.run_tasks import run_tasks
from bertwright.examples.shard import vocabulary_facts


@dataclass(frozen=True)
class Task:
    facts: Path


class InOrder:
    """Does tasks at once, one after another."""

    def map(
        self, function: Callable[[Any], Any], tasks: Iterable[Any], stage: str, report: Callable[..., None]
    ) -> None:
        assert stage == "examples"
        for task in tasks:
            report(function(task))


class Heard:
    """What a log is told of progress."""

    def __init__(self) -> None:
        self.rows: list[tuple[Any, ...]] = []

    def progress(self, *row: Any) -> None:
        self.rows.append(row)


@each_row("world", [1, 2, 3, 7])
def test_processes_together_do_each_task_once(world: int) -> None:
    files, shards = ([Task(Path(f"{kind}{i}")) for i in range(n)] for kind, n in (("file", 2), ("shard", 5)))
    done: list[tuple[str, Path]] = []
    for rank in range(world):
        log, before = Heard(), len(done)
        steps = [
            (lambda task: done.append(("files", task.facts)), files),
            (lambda task: done.append(("shards", task.facts)), shards),
        ]
        run_tasks(steps, InOrder(), WorkSplit(rank, world), log)  # type: ignore[arg-type]
        own = done[before:]
        assert [step for step, _ in own] == sorted(step for step, _ in own), "files first: they may be refused"
        assert log.rows == [("examples", n + 1, len(own), "shards") for n in range(len(own))]
    assert sorted(path for _, path in done) == sorted(task.facts for task in [*files, *shards])


def test_a_process_without_a_task_is_done_at_once() -> None:
    run_tasks([(lambda task: pytest.fail("no task"), [])], InOrder(), WorkSplit(3, 9), Heard())  # type: ignore[arg-type]


def test_loaders_know_the_vocabulary_from_its_file(examples: Artifact) -> None:
    vocab = open_artifact(examples.path.parent / "vocab")
    entries = (vocab.path / "vocab.txt").read_text(encoding="utf-8").splitlines()
    facts = vocabulary_facts(vocab)
    assert facts == read_json(examples.path / "vocabulary.json")
    assert facts["size"] == len(entries) and facts["hash"] == vocab.counts["vocabulary"]
    for name in ("pad", "unk", "cls", "sep", "mask"):
        assert entries[facts[name]] == f"[{name.upper()}]"
    assert [entries[i] for i in facts["unused"]] == [f"[unused{n}]" for n in range(3)]
    assert facts["continues"] == [i for i, entry in enumerate(entries) if entry.startswith("##")]
