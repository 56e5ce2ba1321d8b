"""Observers in a real training: each row once after a crash, none of them can end it, and what they wrote is read back
by the readers of their own packages."""

import json
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.unit.train.conftest import PHASES
from tests.unit.train.test_run import Notes, metric_lines, same, weights

from bertwright.core.artifact import Artifact
from bertwright.core.errors import Interrupted, RecipeError
from bertwright.train.config import TrainConfig
from bertwright.train.monitor.observers import watch
from bertwright.train.monitor.observers.config import MlflowConfig, ObserverConfig, TensorBoardConfig, WandbConfig
from bertwright.train.monitor.observers.observer import Observed, Row, flat, numbers_of
from bertwright.train.monitor.observers.watch import build_observer
from bertwright.train.ranks.ranks import Ranks

pytestmark = pytest.mark.heavy

Train = Callable[..., Artifact]


class Listed:
    """An observer that keeps its rows, and fails where it is told to."""

    def __init__(self, seen: int = 0, fails_at: int = 0) -> None:
        self.seen, self.steps, self.closed, self._fails_at = seen, list[int](), list[bool](), fails_at
        self.first: Row = {}

    def record(self, row: Row) -> None:
        if 0 < self._fails_at <= row["total_steps"]:
            raise OSError(28, "No space left on https://me:secret@host/a?sig=secret")
        self.first = self.first or row
        self.steps.append(row["total_steps"])

    def close(self, finished: bool) -> None:
        self.closed.append(finished)
        if self._fails_at < 0:
            raise ValueError("cannot close https://me:secret@host")


def taking(monkeypatch: pytest.MonkeyPatch, observer: Any) -> None:
    monkeypatch.setattr(watch, "build_observer", lambda config, observed: observer)


def steps_of(folder: Path) -> list[int]:
    return [row["total_steps"] for row in metric_lines(folder)]


def scalars(folder: Path) -> dict[str, dict[int, float]]:
    """What stands in the event files of a folder, by name and step; each step once."""
    pytest.importorskip("tensorboardX", reason="tensorboardX is not installed: pip install 'bertwright[tensorboard]'")
    pytest.importorskip("google_crc32c", reason="google-crc32c is not installed: pip install 'bertwright[formats]'")
    from tensorboardX.proto.event_pb2 import Event

    from bertwright.formats.tfrecord.records import read_records

    found: dict[str, dict[int, float]] = defaultdict(dict)
    (path,) = folder.glob("*.tfevents.*")
    for record in read_records(path):
        event = Event.FromString(record)
        for value in event.summary.value:
            assert event.step not in found[value.tag], f"{value.tag} stands twice at step {event.step}"
            found[value.tag][event.step] = value.simple_value
    return dict(found)


def test_observers_receive_scores_added_to_a_row(train: Train, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(KeyError):
        train(log=Notes(kill_at_row=5, error=KeyError))  # after step 10, so it stands at checkpoint 8
    observer = Listed(seen=8)
    taking(monkeypatch, observer)
    train(phases=[{**PHASES[0], "end_after": 8}, PHASES[1]], observers=["tensorboard"])
    assert observer.steps == [8, 10, 12, 14]
    assert {"time", "phase", "step", "total_steps", "heldout_mlm_loss"} < set(observer.first)
    assert "mlm_loss" not in observer.first, "it has those"


def test_event_files_have_every_row_once_after_a_crash(train: Train) -> None:
    pytest.importorskip("tensorboardX", reason="tensorboardX is not installed: pip install 'bertwright[tensorboard]'")
    with pytest.raises(KeyError):  # three rows are written, the newest checkpoint is of step 4
        train(observers=["tensorboard"], log=Notes(kill_at_row=3, error=KeyError))
    done = train(observers=["tensorboard"])
    rows = [json.loads(line) for line in done.file("metrics.jsonl").read_text().splitlines()]
    found = scalars(done.path / "observers" / "tensorboard")
    for name in ("mlm_loss", "learning_rate", "tokens_per_second", "total_steps", "heldout_mlm_loss"):
        expected = {row["total_steps"]: row[name] for row in rows if row.get(name) is not None}
        assert found[name] == pytest.approx(expected, rel=1e-6)
    assert "batch" not in found and "saved" not in found
    assert not [name for name in done.manifest["files"] if name.startswith("observers")]


def test_an_observer_that_comes_later_gets_the_rows_of_before(train: Train) -> None:
    pytest.importorskip("tensorboardX", reason="tensorboardX is not installed: pip install 'bertwright[tensorboard]'")
    with pytest.raises(Interrupted):
        train(log=Notes(kill_at_row=2))
    done = train(observers=[{"kind": "tensorboard"}])
    assert list(scalars(done.path / "observers" / "tensorboard")["mlm_loss"]) == steps_of(done.path)


def test_tensorboard_itself_reads_them(train: Train) -> None:
    events = pytest.importorskip(
        "tensorboard.backend.event_processing.event_accumulator",
        reason="TensorBoard, the reader, is not installed: pip install tensorboard",
    )
    pytest.importorskip("tensorboardX", reason="tensorboardX is not installed: pip install 'bertwright[tensorboard]'")
    done = train(observers=["tensorboard"])
    accumulator = events.EventAccumulator(str(done.path / "observers" / "tensorboard"))
    accumulator.Reload()
    read = {event.step: event.value for event in accumulator.Scalars("mlm_loss")}
    rows = [json.loads(line) for line in done.file("metrics.jsonl").read_text().splitlines()]
    assert read == pytest.approx({row["total_steps"]: row["mlm_loss"] for row in rows}, rel=1e-6)


def test_files_of_another_training_in_the_same_folder_stay(tmp_path: Path) -> None:
    pytest.importorskip("tensorboardX", reason="tensorboardX is not installed: pip install 'bertwright[tensorboard]'")
    row = {"time": "2026-03-01T10:00:00Z", "total_steps": 1, "mlm_loss": 2.0}
    for key in ("a" * 64, "b" * 64, "a" * 64):
        observer = build_observer(TensorBoardConfig(folder=tmp_path), Observed("x", key, tmp_path, {}))
        observer.record(row)
        observer.close(True)
    names = sorted(path.name.rpartition(".")[2] for path in tmp_path.iterdir())
    assert names == ["aaaaaaaaaaaaaaaa-1", "bbbbbbbbbbbbbbbb-0"]


def test_a_failing_observer_is_reported_and_training_continues(train: Train, monkeypatch: pytest.MonkeyPatch) -> None:
    observer, said = Listed(fails_at=5), Notes()
    taking(monkeypatch, observer)
    watched, plain = train("watched", observers=["tensorboard"], log=said), train("plain")
    assert same(weights(watched), weights(plain)) and metric_lines(watched.path) == metric_lines(plain.path)
    assert observer.steps == [2, 4] and observer.closed == [False], "it lets go of what it holds"
    (first, last) = (line for line in said.lines if "observer" in line)
    assert first == (
        "warning: the observer tensorboard failed at step 6 (OSError: [Errno 28] No space left on "
        "https://host/a). Training goes on without it. metrics.jsonl has every row, and the next start sends "
        "the observer the missing ones."
    )
    assert last == "warning: the observer tensorboard does not have the rows from step 6 on, because it failed there."


def test_other_ranks_wait_for_a_slow_observer(train: Train, monkeypatch: pytest.MonkeyPatch) -> None:
    """A package may ask a server that does not answer for longer than `train.hang_timeout`."""
    busy, found = [False], set[tuple[str, bool]]()

    @contextmanager
    def waiting(ranks: Ranks) -> Iterator[None]:
        assert not busy[0]
        busy[0] = True
        try:
            yield
        finally:
            busy[0] = False

    class Slow(Listed):
        def record(self, row: Row) -> None:
            found.add(("record", busy[0]))
            super().record(row)

        def close(self, finished: bool) -> None:
            found.add(("close", busy[0]))
            super().close(finished)

    def begin(config: ObserverConfig, observed: Observed) -> Slow:
        found.add(("begin", busy[0]))
        return Slow(fails_at=failing)

    monkeypatch.setattr(Ranks, "busy", waiting)
    monkeypatch.setattr(watch, "build_observer", begin)
    for failing in (0, 4):
        train(f"failing-{failing}", observers=["tensorboard"])
        assert found == {("begin", True), ("record", True), ("close", True)} and not busy[0]
        found.clear()


def test_one_that_cannot_close_is_named_and_costs_nothing(train: Train, monkeypatch: pytest.MonkeyPatch) -> None:
    said = Notes()
    taking(monkeypatch, Listed(fails_at=-1))
    assert train(observers=["tensorboard"], log=said).counts["steps"] == 18
    assert (
        "warning: the observer tensorboard failed when it was closed (ValueError: cannot close https://host)."
        in said.lines
    )


def test_rows_that_it_has_already_are_not_given_again(train: Train, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = Listed(), Listed(seen=5)
    taking(monkeypatch, first)
    with pytest.raises(Interrupted):
        train(observers=["tensorboard"], log=Notes(kill_at_row=2))
    assert first.steps == [2, 4, 5] and first.closed == [False], "it is told that training has not ended"
    taking(monkeypatch, second)
    done = train(observers=["tensorboard"])
    assert [*first.steps, *second.steps] == steps_of(done.path) and second.closed == [True]


def test_one_that_cannot_begin_is_refused_before_any_step(
    train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(config: Any, observed: Any) -> Any:
        raise ValueError("no such space as https://me:secret@host")

    monkeypatch.setattr(watch, "build_observer", fail)
    why = r"\(ValueError: no such space as https://host\)"
    says = rf"train\.observers: trackio cannot start {why}\. Correct the cause, or leave trackio out\."
    with pytest.raises(RecipeError, match=says):
        train(observers=[{"kind": "trackio", "space": "nobody/nothing"}])
    assert not (tmp_path / "train" / "metrics.jsonl").read_text()


def test_a_run_of_mlflow_has_every_row_once(train: Train) -> None:
    pytest.importorskip("mlflow", reason="MLflow is not installed: pip install 'bertwright[mlflow]'")
    with pytest.raises(KeyError):
        train(observers=["mlflow"], log=Notes(kill_at_row=3, error=KeyError))
    done = train(observers=["mlflow"])
    from mlflow.tracking import MlflowClient

    client = MlflowClient(tracking_uri=(done.path / "observers" / "mlflow").as_uri())
    (run,) = client.search_runs([client.get_experiment_by_name("bertwright").experiment_id])
    history = client.get_metric_history(run.info.run_id, "mlm_loss")
    rows = [json.loads(line) for line in done.file("metrics.jsonl").read_text().splitlines()]
    assert [(each.step, each.value) for each in history] == [(row["total_steps"], row["mlm_loss"]) for row in rows]
    assert run.info.status == "FINISHED" and run.data.params["train.phases.0.length"] == "16"


def test_a_run_of_trackio_has_every_row_once(train: Train, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TRACKIO_DIR", str(tmp_path / "trackio"))
    monkeypatch.setenv("TRACKIO_SPACE_ID", "somebody/else")  # no recipe names it, so nothing is sent there
    pytest.importorskip("trackio", reason="trackio is not installed: pip install 'bertwright[trackio]'")
    with pytest.raises(KeyError):
        train(observers=["trackio"], log=Notes(kill_at_row=3, error=KeyError))
    done = train(observers=["trackio"])
    from trackio.sqlite_storage import SQLiteStorage

    (name,) = [name for name in SQLiteStorage.get_runs("bertwright") if name.startswith(done.path.parent.name)]
    logged = SQLiteStorage.get_logs("bertwright", name)
    rows = [json.loads(line) for line in done.file("metrics.jsonl").read_text().splitlines()]
    assert [(each["step"], each["mlm_loss"]) for each in logged] == [(r["total_steps"], r["mlm_loss"]) for r in rows]


def test_wandb_runs_stay_in_files_and_resume(train: Train, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("wandb", reason="Weights & Biases is not installed: pip install 'bertwright[wandb]'")
    monkeypatch.setenv("WANDB_MODE", "online")  # no recipe says so
    with pytest.raises(KeyError):
        train(observers=["wandb"], log=Notes(kill_at_row=3, error=KeyError))
    folder = train(observers=["wandb"]).path / "observers" / "wandb"
    first, second = sorted(folder.glob("wandb/offline-run-*/run-*.wandb"))
    # A row and the summary after it name a value each: three rows before the crash, and the other six after it.
    assert [path.read_bytes().count(b"data_wait_share") for path in (first, second)] == [2 * 3, 2 * 6]
    assert (folder / "last-step").read_text() == "18"


def test_only_numbers_are_drawn() -> None:
    row = {"total_steps": 3, "mlm_loss": None, "saved": True, "batch": "98", "rate": 0.5}
    assert numbers_of(row) == {"total_steps": 3.0, "rate": 0.5}


def test_settings_are_told_by_their_dotted_keys() -> None:
    settings = {"train": {"phases": [{"length": 16}, {"length": 32}], "name": "próba", "range": [0.0, 1.0], "no": []}}
    assert flat(settings) == {
        "train.phases.0.length": "16", "train.phases.1.length": "32", "train.name": "próba",
        "train.range": "[0.0, 1.0]", "train.no": "[]",
    }  # fmt: skip


def test_an_address_with_a_password_is_refused() -> None:
    with pytest.raises(RecipeError, match=r"a password before the @: remove it, and set MLFLOW_TRACKING_USERNAME"):
        MlflowConfig(tracking_uri="https://me:secret@example.org/mlflow")
    assert MlflowConfig(tracking_uri="https://example.org/mlflow").tracking_uri and ObserverConfig


def test_an_address_of_a_server_with_a_secret_is_refused() -> None:
    with pytest.raises(
        RecipeError, match=r"server contains a user name or a password before the @: remove it, and log in with `wandb"
    ):
        WandbConfig(server="https://key@wandb.example.org")
    says = r"contains a password or a token in its query: remove it, and "
    for name in ("password", "token", "api_key", "access_token", "sig", "X-Amz-Signature"):
        with pytest.raises(RecipeError, match=f"server {says}log in with `wandb login`, or set WANDB_API_KEY"):
            WandbConfig(server=f"https://wandb.example.org/?{name}=secret")
        with pytest.raises(RecipeError, match=f"tracking_uri {says}set MLFLOW_TRACKING_USERNAME"):
            MlflowConfig(tracking_uri=f"https://example.org/mlflow?a=b&{name}=secret")
    assert WandbConfig(server="https://wandb.example.org").server


def test_the_same_observer_twice_is_refused() -> None:
    phases = ({"length": 16, "batch": 8, "learning_rate": 1e-2, "steps": 5},)

    def config(*observers: Any) -> TrainConfig:
        settings: dict[str, Any] = {"phases": phases, "observers": observers}
        return TrainConfig(**settings)

    with pytest.raises(RecipeError, match="names tensorboard 2 times: name it once$"):
        config("tensorboard", {"kind": "tensorboard", "folder": "/elsewhere"})
    says = "names mlflow 2 times: name it once, or give each another tracking_uri or experiment"
    with pytest.raises(RecipeError, match=says):
        config("mlflow", "mlflow")
    assert len(config("mlflow", {"kind": "mlflow", "experiment": "other"}, "tensorboard").observers) == 3


def test_one_that_has_begun_is_closed_where_the_next_cannot(train: Train, monkeypatch: pytest.MonkeyPatch) -> None:
    first = Listed(fails_at=-1)

    def built(config: Any, observed: Any) -> Any:
        if config.kind == "mlflow":
            raise ValueError("no such server")
        return first

    monkeypatch.setattr(watch, "build_observer", built)
    with pytest.raises(RecipeError, match="mlflow cannot start"):
        train(observers=["tensorboard", "mlflow"])
    assert first.closed == [False] and not first.steps
