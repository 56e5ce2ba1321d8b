"""Ranks of which one is asked to stop while all score: they save at once, and score when they go on."""

from pathlib import Path

import torch
from safetensors.torch import load_file
from tests.conftest import Prepared
from tests.pipeline.ranks_of import Training, train_on
from tests.pipeline.test_engines import assert_same

from bertwright.core.artifact import open_artifact

ENGINES = ("ddp", "fsdp")


def test_they_end_as_if_they_had_not_been_stopped(prepared: Prepared, tmp_path: Path) -> None:
    folder, every = tmp_path / "r", list[Training]()
    for engine in ENGINES:
        settings = {"engine": engine}
        whole, going_on = Training(f"{engine}-whole", settings), Training(f"{engine}-stopped", settings)
        every += [whole, Training(going_on.name, settings, stop_scoring=1), going_on]
    train_on(2, every, prepared.examples.path, prepared.vocab.path, folder)
    for engine in ENGINES:
        whole, stopped = (open_artifact(folder / f"{engine}-{name}", "train") for name in ("whole", "stopped"))
        assert [start["from_step"] for start in stopped.counts["sessions"]] == [0, 10]
        assert_same(stopped.path, whole.path, rel=0)
        ours, theirs = (load_file(done.file("model/model.safetensors")) for done in (stopped, whole))
        assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
