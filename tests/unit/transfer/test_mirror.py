"""A mirror has what is kept here, each whole; brings back what a lost folder had; and cannot end a training."""

import os
import shutil
import signal
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import fsspec
import pytest
from tests.processes import PATIENCE
from tests.rows import each_row
from tests.unit.train.conftest import PHASES
from tests.unit.train.test_guesses import ASKED
from tests.unit.train.test_run import metric_lines
from tests.unit.train.test_saving import Notes, tensors_of

from bertwright.core.artifact import MANIFEST, Artifact, open_artifact
from bertwright.core.errors import ArtifactError, CheckpointError, DataError, Interrupted, RecipeError
from bertwright.core.files import sha256
from bertwright.train.config import TrainConfig
from bertwright.train.ranks.ranks import Ranks
from bertwright.train.session import Session
from bertwright.transfer import mirror as mirroring
from bertwright.transfer import restore as restoring
from bertwright.transfer.remote_folder import RemoteFolder

pytestmark = pytest.mark.heavy

Train = Callable[..., Artifact]


@pytest.fixture(params=["memory", "file"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    if request.param == "file":
        yield f"file://{tmp_path}/the mirror"
        return
    name = uuid.uuid4().hex
    yield f"memory://{name}/run"
    system = fsspec.filesystem("memory")
    if system.exists(f"/{name}"):
        system.rm(f"/{name}", recursive=True)


def brought(url: str, target: Path) -> Path:
    """All that is at `url`, copied to this machine with fsspec alone."""
    system, root = fsspec.core.url_to_fs(url)
    system.invalidate_cache()
    for path in system.find(root):
        place = target / path[len(root) :].lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(system.cat_file(path))
    return target


def content(folder: Path) -> dict[str, str]:
    return {p.relative_to(folder).as_posix(): sha256(p) for p in folder.rglob("*") if p.is_file() and p.name[0] != "."}


def failing(monkeypatch: pytest.MonkeyPatch, fails: Callable[[str], bool]) -> None:
    """Have putting fail for places that `fails` says."""
    for name in ("send", "write"):
        original = getattr(RemoteFolder, name)

        def put(self: RemoteFolder, place: str, *rest: Any, original: Any = original) -> Any:
            if fails(place):
                raise ConnectionError("the network is down; try https://who:secret@host?sig=secret")
            return original(self, place, *rest)

        monkeypatch.setattr(RemoteFolder, name, put)


@pytest.mark.parametrize("save_async", [False, True])
def test_a_mirror_has_the_kept_checkpoints_and_the_model(
    train: Train, url: str, tmp_path: Path, save_async: bool
) -> None:
    alone = train("alone")
    done = train("run", mirror=url, save_async=save_async, keep_checkpoints=1)
    assert done.fingerprint == alone.fingerprint, "where it is copied to is no part of what is made"
    there = content(brought(url, tmp_path / "there"))
    rows = {name for name in there if name.startswith("checkpoints/") and name.endswith("metrics.jsonl")}
    here = {name: value for name, value in content(done.path).items() if not name.startswith("observers/")}
    assert {name: value for name, value in there.items() if name not in rows} == here
    newest = max(rows)
    assert there[newest] == there["metrics.jsonl"], "the rows up to the last checkpoint are all rows"
    assert open_artifact(tmp_path / "there", "train").verify() and len(rows) == len(
        list(done.path.glob("checkpoints/*"))
    )


@pytest.mark.parametrize("row", [5, 8])
def test_a_lost_folder_is_restored_and_resumes_bit_identical(train: Train, url: str, tmp_path: Path, row: int) -> None:
    undisturbed = train("undisturbed", save_async=False, asked=ASKED)

    def crash(number: int) -> None:
        if number == row:
            raise RuntimeError("test")

    with pytest.raises(RuntimeError):
        train("run", mirror=url, save_async=True, log=Notes(crash), asked=ASKED)
    before = sorted(path.name for path in (tmp_path / "run" / "checkpoints").iterdir())
    shutil.rmtree(tmp_path / "run")
    notes = Notes()
    done = train("run", mirror=url, log=notes, asked=ASKED)
    assert any(line == f"train: downloaded from {url}: {', '.join(before)}" for line in notes.lines), notes.lines
    assert any(f"resuming from {before[-1]}" in line for line in notes.lines)
    assert tensors_of(done.path) == tensors_of(undisturbed.path)
    assert metric_lines(done.path) == metric_lines(undisturbed.path)
    asked = [(folder.path / "guesses.jsonl").read_bytes() for folder in (done, undisturbed)]
    assert asked[0] == asked[1] and asked[0].count(b"\n") > 2, "also those before the loss"


def with_graphs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have each phase end with a file, as those that ONNX Runtime trains do."""
    monkeypatch.setattr(
        Session,
        "write_graph",
        lambda session, phase: (session.checkpoints.folder.parent / f"phase-{phase.index}.onnx").write_bytes(
            bytes([phase.index])
        ),
    )


@pytest.mark.parametrize("damaged", [False, True])
def test_onnx_files_are_restored_or_reported_as_damaged(
    train: Train, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damaged: bool
) -> None:
    with_graphs(monkeypatch)

    def crash(row: int) -> None:
        if row == 9:
            raise RuntimeError("test")

    with pytest.raises(RuntimeError):
        train("run", mirror=url, log=Notes(crash))
    assert (tmp_path / "run" / "phase-0.onnx").is_file() and not (tmp_path / "run" / "phase-1.onnx").exists()
    shutil.rmtree(tmp_path / "run")
    if damaged:
        system, root = fsspec.core.url_to_fs(url)
        system.pipe_file(f"{root}/phase-0.onnx", b"")
    notes = Notes()
    done = train("run", mirror=url, log=notes)
    assert done.names("phase-") == (["phase-1.onnx"] if damaged else ["phase-0.onnx", "phase-1.onnx"])
    said = [line for line in notes.lines if "-0.onnx" in line or "-1.onnx" in line]
    assert len(said) == damaged and all("phase-0.onnx of train.mirror is damaged" in line for line in said)
    there = brought(url, tmp_path / "there")
    assert open_artifact(there, "train").verify() and (there / "phase-1.onnx").read_bytes() == bytes([1])


def test_a_partial_copy_is_not_restored(
    train: Train, url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    def fails(place: str) -> bool:
        return place == "checkpoints/step-000000008/optimizer.safetensors"

    def crash(number: int) -> None:
        if number == 5:
            raise RuntimeError("test")

    with monkeypatch.context() as patch:
        failing(patch, fails)
        with pytest.raises(RuntimeError):
            train("run", mirror=url, log=Notes(crash))
    there = brought(url, tmp_path / "there")
    assert (there / "checkpoints/step-000000008/model.safetensors").is_file(), "the copy was begun"
    assert not (there / "checkpoints/step-000000008" / MANIFEST).exists()
    shutil.rmtree(tmp_path / "run")
    notes = Notes()
    train("run", mirror=url, log=notes)
    assert f"train: downloaded from {url}: step-000000004" in notes.lines


def test_a_failure_is_logged_once_without_secrets_and_retried(
    train: Train, url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    failing(monkeypatch, lambda place: "step-000000004" in place or "step-000000008" in place)
    notes = Notes()
    done = train("run", mirror=url, keep_checkpoints=1, log=notes)
    said = [line for line in notes.lines if "mirror" in line]
    assert len(said) == 1 and said[0].startswith(
        f"warning: nothing can be copied to train.mirror {url} (ConnectionError"
    )
    assert "Training goes on, and each later checkpoint tries again." in said[0] and "secret" not in said[0]
    there = content(brought(url, tmp_path / "there"))
    assert there["model/model.safetensors"] == sha256(done.path / "model" / "model.safetensors")
    assert not any("step-000000008" in name for name in there), "pruned here before it could be copied"


def test_a_checkpoint_pruned_during_its_copy_is_no_failure(
    train: Train, url: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    put, gone = RemoteFolder.send, threading.Event()

    def slow(self: RemoteFolder, place: str, data: Any) -> None:
        if place.endswith("step-000000004/optimizer.safetensors"):
            assert gone.wait(PATIENCE)
        put(self, place, data)

    def at_row(_: int) -> None:
        if (tmp_path / "run/checkpoints/step-000000012").exists() and not list(tmp_path.glob("run/checkpoints/*4")):
            gone.set()

    monkeypatch.setattr(RemoteFolder, "send", slow)
    notes = Notes(at_row)
    train("run", mirror=url, keep_checkpoints=1, log=notes)
    assert gone.is_set() and not any("mirror" in line for line in notes.lines)
    assert not any("step-000000004" in name for name in content(brought(url, tmp_path / "there")))


def test_training_finishes_while_the_mirror_is_down(train: Train, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    failing(monkeypatch, lambda _: True)
    notes = Notes()
    done = train("run", mirror=url, log=notes)
    assert done.counts["steps"] == 18
    said = [line for line in notes.lines if "mirror" in line]
    assert len(said) == 2 and "secret" not in "".join(said)
    assert said[1].startswith(
        f"warning: train.mirror {url} does not have the newest files: ConnectionError: the network is"
    )
    assert f"All files are in {done.path}; copy that folder there yourself" in said[1]


def test_a_finished_training_is_copied_to_another_mirror(
    train: Train, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = train("run")
    notes = Notes()
    assert train("run", mirror=url, log=notes).fingerprint == done.fingerprint and not notes.lines
    there = brought(url, tmp_path / "there")
    assert content(there).items() >= {k: v for k, v in content(done.path).items() if k.startswith("model/")}.items()
    assert {path.name for path in (there / "checkpoints").iterdir()} == {
        path.name for path in (done.path / "checkpoints").iterdir()
    }
    failing(monkeypatch, lambda _: pytest.fail("what is there is not copied again"))
    train("run", mirror=url, log=notes)
    assert not notes.lines


def test_an_unreadable_mirror_stops_only_a_start_from_nothing(
    train: Train, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def down(*_: Any) -> list[str]:
        raise ConnectionError("no route")

    with monkeypatch.context() as patch:
        patch.setattr(RemoteFolder, "folders", down)
        with pytest.raises(DataError, match=r"cannot be read \(ConnectionError: no route\), so it is unknown whether"):
            train("run", mirror=url)

    def crash(number: int) -> None:
        if number == 5:
            raise RuntimeError("test")

    with pytest.raises(RuntimeError):
        train("run", mirror=url, log=Notes(crash))
    monkeypatch.setattr(RemoteFolder, "folders", down)
    notes = Notes()
    assert train("run", mirror=url, log=notes).counts["steps"] == 18
    assert any("no route" in line and "Training goes on" in line for line in notes.lines)


def test_checkpoints_of_another_training_are_refused(train: Train, url: str, tmp_path: Path) -> None:
    train("first", mirror=url)
    before = content(brought(url, tmp_path / "before"))
    for name in ("first-again", "second"):
        with pytest.raises(
            ArtifactError,
            match=r"holds checkpoints trained with other settings.*train.seed: 42 -> 7.*use a different address",
        ):
            train(name, mirror=url, seed=7)
    assert content(brought(url, tmp_path / "after")) == before
    assert not list((tmp_path / "second" / "checkpoints").iterdir())


def test_damaged_checkpoints_of_the_mirror_are_skipped(train: Train, url: str, tmp_path: Path) -> None:
    """A bit that flipped there: an older one is taken, saying so; where none is whole, nothing starts at step 0."""
    train("run", mirror=url, phases=[PHASES[0]])
    shutil.rmtree(tmp_path / "run")
    system, root = fsspec.core.url_to_fs(url)
    names = sorted(path for path in system.find(root) if path.endswith("checkpoints/step-000000012/model.safetensors"))
    damage(system, names[0])
    notes = Notes()
    train("run", mirror=url, phases=[PHASES[0]], log=notes)
    assert any(line.startswith("train: skipping the damaged checkpoint step-000000012 of") for line in notes.lines)
    assert any("resuming from step-000000008" in line for line in notes.lines)
    shutil.rmtree(tmp_path / "run")
    for path in system.find(root):
        if "/checkpoints/" in path and path.endswith("model.safetensors"):
            damage(system, path)
    with pytest.raises(CheckpointError, match=r"none of the \d checkpoints at train.mirror .* is complete"):
        train("run", mirror=url, phases=[PHASES[0]])


def damage(system: Any, path: str) -> None:
    data = bytearray(system.cat_file(path))
    data[-1] ^= 1
    system.pipe_file(path, bytes(data))


@pytest.mark.filterwarnings("ignore")
def test_s3(train: Train, s3: Any, tmp_path: Path) -> None:
    s3.create_bucket(Bucket="runs")
    on_a_real_storage(train, "s3://runs/wiki", tmp_path)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_azure(train: Train, azure: Any, tmp_path: Path) -> None:
    azure.create_container("runs")
    on_a_real_storage(train, "az://runs/wiki", tmp_path)


def on_a_real_storage(train: Train, url: str, tmp_path: Path) -> None:
    """Copied, pruned, brought back and finished."""
    undisturbed = train("undisturbed", save_async=False, keep_checkpoints=1)

    def crash(number: int) -> None:
        if number == 8:
            raise RuntimeError("test")

    with pytest.raises(RuntimeError):
        train("run", mirror=url, save_async=True, keep_checkpoints=1, log=Notes(crash))
    shutil.rmtree(tmp_path / "run")
    notes = Notes()
    done = train("run", mirror=url, keep_checkpoints=1, log=notes)
    assert any("downloaded from" in line for line in notes.lines) and not any("warning" in x for x in notes.lines)
    assert tensors_of(done.path) == tensors_of(undisturbed.path)
    there = brought(url, tmp_path / "there")
    assert tensors_of(there) == tensors_of(done.path) and open_artifact(there, "train").verify()


def test_waiting_passes_are_merged(train: Train, monkeypatch: pytest.MonkeyPatch, url: str) -> None:
    passes: list[str] = []
    original = mirroring.Mirror._copy_checkpoints

    def slow(self: mirroring.Mirror) -> None:
        passes.append("begun")
        original(self)

    monkeypatch.setattr(mirroring.Mirror, "_copy_checkpoints", slow)
    train("run", mirror=url, checkpoint_every=1)
    assert 1 <= len(passes) <= 19


@each_row(
    ("address", "why"),
    [
        ("s3://who:secret@bucket/run", "name and a password before the @"),
        ("https://account.blob/run?sig=secret", "query after the \\?"),
        ("az://box/run?token=secret", "query after the \\?"),
        ("runs/there", "is not an address"),
        ("https://host/run", "web server, which cannot be written to"),
    ],
)
def test_refused_addresses_are_not_shown(address: str, why: str) -> None:
    with pytest.raises(RecipeError, match=why) as error:
        TrainConfig(phases=PHASES, mirror=address)
    assert "secret" not in str(error.value)


class Noting:
    """What the first rank says to the others, and when it copies."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.said = list[str]()
        monkeypatch.setattr(Ranks, "busy", lambda ranks: self.busy())
        monkeypatch.setattr(Ranks, "barrier", lambda ranks: self.said.append("barrier"))

    @contextmanager
    def busy(self) -> Iterator[None]:
        self.said.append("busy")
        yield
        self.said.append("done")

    def copies(self, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
        """Have a copy be so slow that it is the last thing that is waited for."""
        copy = getattr(mirroring.Mirror, name)

        def noted(mirror: mirroring.Mirror) -> None:
            while self.said[-1] != "busy":
                time.sleep(0.001)
            copy(mirror)
            self.said.append("copied")

        monkeypatch.setattr(mirroring.Mirror, name, noted)


def test_other_ranks_wait_for_the_restore_and_the_last_copy(
    train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"file://{tmp_path}/mirror"
    train("run", mirror=url)
    (tmp_path / "run").rename(tmp_path / "lost")
    noting = Noting(monkeypatch)
    noting.copies(monkeypatch, "_copy_finished")
    right = restoring.restore
    monkeypatch.setattr(restoring, "restore", lambda *given: (right(*given), noting.said.append("brought back")))
    train("run", mirror=url)
    assert noting.said[:3] == ["busy", "brought back", "done"]
    assert noting.said[-4:] == ["busy", "copied", "done", "barrier"]


def test_all_ranks_wait_for_the_last_copy_after_a_stop(
    train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    noting = Noting(monkeypatch)
    noting.copies(monkeypatch, "_copy_checkpoints")

    def stop(row: int) -> None:
        os.kill(os.getpid(), signal.SIGTERM)

    with pytest.raises(Interrupted):
        train("run", mirror=f"file://{tmp_path}/mirror", log=Notes(stop))
    # Before them, rank 0 chooses the precision.
    assert noting.said[-5:] == ["barrier", "busy", "copied", "done", "barrier"] and "copied" not in noting.said[:-5]
