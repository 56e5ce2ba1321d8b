"""A disk that becomes unreadable ends every stage with a one-sentence error and exit code 3, and nothing is lost."""

import builtins
import errno
import io
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.pipeline.conftest import Call
from tests.rows import each_row

from bertwright.core import artifact
from bertwright.sample import SMALL as SAMPLE

READ = [
    ("corpus", "corpus.filter.min_sentences=4", str(SAMPLE)),
    ("vocab", "vocab.size=390", "corpus/manifest.json"),
    ("vocab", "vocab.size=390", "corpus/shards/00000.txt.zst"),
    ("examples", "examples.seed=7", "corpus/shards/00000.txt.zst"),
    ("train", "train.phases.1.steps=7", "examples/store/train.tokens"),
    ("train", "train.phases.1.steps=7", "train/checkpoints/step-000000018/model.safetensors"),
    ("train", "train.phases.1.steps=7", "train/metrics.jsonl"),
    ("evaluate", "evaluate.samples=3", "vocab/tokenizer.json"),
    ("export", "export.name=other", "evaluate/predictions.json"),
    ("report", "report.title=other", "train/metrics.jsonl"),
]


class Failing(io.FileIO):
    """A file that can be opened but not read."""

    number = errno.EIO

    def readinto(self, _: Any) -> int:
        raise OSError(self.number, os.strerror(self.number))

    def readall(self) -> bytes:
        raise OSError(self.number, os.strerror(self.number))


@each_row(("stage", "override", "name"), READ)
def test_a_file_that_cannot_be_read(
    stage: str,
    override: str,
    name: str,
    finished: Path,
    tmp_path: Path,
    call: Call,
    small_recipe: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run = Path(shutil.copytree(finished, tmp_path / "run"))
    target, opened = run / name, io.open
    kept = [path for path in run.rglob("*") if path.suffix in (".safetensors", ".zst", ".jsonl")]
    # The log gets the sentences of this start.
    before = {path: path.stat().st_size for path in kept if path.name != "log.jsonl"}
    Failing.number = errno.ESTALE if "zst" in name else errno.EIO

    def failing(file: Any, mode: str = "r", *rest: Any, **named: Any) -> Any:
        if isinstance(file, str | Path) and Path(file) == target and "b" in mode and "w" not in mode:
            return io.BufferedReader(Failing(str(file)))
        return opened(file, mode, *rest, **named)

    monkeypatch.setattr(artifact, "_verified", set())
    with monkeypatch.context() as patch:
        patch.setattr(io, "open", failing)
        patch.setattr(builtins, "open", failing)
        done = call("run", small_recipe, override, "--until", stage, "--out", run)
    (said,) = (line for line in done.err.splitlines() if line.startswith("bertwright: "))
    assert done.code == 3 and done.out == "", done.err
    assert str(target) in said and os.strerror(Failing.number) in said, said
    assert (
        "restore the file" in said or "Set corpus.source to the path of a file that you have permission to read" in said
    )
    assert {path: path.stat().st_size for path in before} == before, "nothing that was finished is lost"
