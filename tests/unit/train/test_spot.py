"""Notices that a machine is taken away, by stubs of metadata services: each leads to a checkpoint, disturbs nothing."""

import json
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.metadata import Metadata, event, serving_metadata
from tests.processes import PATIENCE
from tests.reference.unions import sections_of
from tests.unit.train.test_saving import Notes, tensors_of

from bertwright.core.artifact import Artifact
from bertwright.core.errors import Interrupted, RecipeError
from bertwright.train.config import TrainConfig
from bertwright.train.machine import spot_notices as spot
from bertwright.train.machine.config import AwsNoticeConfig, AzureNoticeConfig, GcpNoticeConfig, SpotNoticeConfig
from bertwright.train.machine.spot_notices import notices, seconds_left, watch_for_notices
from bertwright.train.machine.stop_requests import StopRequests, watch_stop_requests

pytestmark = pytest.mark.heavy

Train = Callable[..., Artifact]


@pytest.fixture
def metadata(monkeypatch: pytest.MonkeyPatch) -> Iterator[Metadata]:
    # A proxy of the environment is not asked.
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    with serving_metadata() as service:
        yield service


CLOUDS = [config for config in sections_of(SpotNoticeConfig) if "address" in config.model_fields]


@pytest.mark.parametrize("cloud", CLOUDS, ids=lambda config: str(config.model_fields["kind"].default))
def test_each_cloud_is_asked_in_its_own_way(cloud: Any, metadata: Metadata) -> None:
    config = cloud(address=metadata.address)
    assert notices(config) == {}
    metadata.taken = datetime.now(UTC).replace(microsecond=0) + timedelta(seconds=30)
    ((name, when),) = notices(config).items()
    known = {"azure": ("Preempt p1", metadata.taken), "aws": ("terminate", metadata.taken), "gcp": ("preempted", None)}
    assert (name, when) == known[config.kind]
    metadata.answer = b"<html>\xff"
    if config.kind != "gcp":
        with pytest.raises(ValueError):
            notices(config)
    else:
        assert notices(config) == {}


def test_the_seconds_left_are_those_of_utc(monkeypatch: pytest.MonkeyPatch) -> None:
    now = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    monkeypatch.setattr(
        "bertwright.train.machine.spot_notices.datetime", SimpleNamespace(now=lambda zone: now.astimezone(zone))
    )
    assert seconds_left(now + timedelta(seconds=30)) == 30
    assert seconds_left((now + timedelta(seconds=30)).replace(tzinfo=None)) == 30
    assert seconds_left((now - timedelta(seconds=2)).astimezone(timezone(timedelta(hours=9)))) == -2


def test_what_azure_says_of_time_may_be_empty_or_wrong(metadata: Metadata) -> None:
    begun = {**event("Terminate", "t1", datetime.now(UTC)), "NotBefore": ""}
    metadata.answer = json.dumps({"Events": [begun]}).encode()
    config = AzureNoticeConfig(address=metadata.address)
    assert notices(config) == {"Terminate t1": None}
    for wrong in ({"Events": [{**begun, "NotBefore": "soon"}]}, {"Events": [3]}, [], {"events": []}):
        metadata.answer = json.dumps(wrong).encode()
        with pytest.raises(ValueError):
            notices(config)


def until(true: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_a_notice_and_its_withdrawal_are_logged_once(metadata: Metadata) -> None:
    notes = Notes()
    with watch_for_notices(AzureNoticeConfig(address=metadata.address, every=0.01), notes) as notice:
        until(lambda: len(metadata.asked) > 2)
        assert not notice.is_new() and not notes.lines
        metadata.taken = datetime.now(UTC) + timedelta(seconds=31)
        until(lambda: bool(notes.lines))
        until(notice.is_new)
        before = len(metadata.asked)
        until(lambda: len(metadata.asked) > before + 2)
        assert not notice.is_new() and not notice.requires_end(), "told once"
        metadata.taken = None
        until(lambda: len(notes.lines) > 1)
    assert re.fullmatch(
        r"train: azure reclaims this machine in \d+ s \(Preempt p1\): a checkpoint is saved after this step, "
        "and training continues as long as possible",
        notes.lines[0],
    )
    assert notes.lines[1:] == ["train: azure no longer announces that it reclaims this machine (Preempt p1)"]
    stopped = len(metadata.asked)
    time.sleep(0.1)
    assert len(metadata.asked) <= stopped + 1, "nobody is asked after the block"


def test_only_the_first_rank_of_a_machine_asks(metadata: Metadata, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCAL_RANK", "1")
    with watch_for_notices(AzureNoticeConfig(address=metadata.address, every=0.01), Notes()) as notice:
        time.sleep(0.05)
        assert not notice.is_new()
    with watch_stop_requests(TrainConfig(phases=[PHASE]).spot_notice, Notes()) as asked:
        assert not asked.to_save() and not asked.to_stop()
    assert not metadata.asked and not [each for each in threading.enumerate() if each.name == "spot notice"]


PHASE = {"length": 16, "batch": 8, "learning_rate": 1e-2, "steps": 12}


@pytest.mark.parametrize("ends", [False, True])
@pytest.mark.parametrize("save_async", [False, True])
def test_a_notice_leads_to_a_checkpoint(
    train: Train, metadata: Metadata, tmp_path: Path, ends: bool, save_async: bool
) -> None:
    undisturbed = train("undisturbed")
    config = {"kind": "azure", "address": metadata.address, "every": 0.01, "ends": ends}

    def announce(row: int) -> None:
        if row == 3:  # of step 6; the recipe saves after 4 and 8
            metadata.taken = datetime.now(UTC) + timedelta(seconds=30)
            until(lambda: any("reclaims this machine in" in line for line in notes.lines))

    notes = Notes(announce)
    settings = {"spot_notice": config, "save_async": save_async, "keep_checkpoints": 20}
    if ends:
        with pytest.raises(
            Interrupted, match="by a notice that the cloud reclaims a machine after step 7 of 12; everythi"
        ):
            train("run", log=notes, **settings)
        assert Interrupted.exit_code == 75
    else:
        train("run", log=notes, **settings)
    steps = sorted(path.name for path in (tmp_path / "run" / "checkpoints").iterdir())
    assert "step-000000007" in steps and (steps[-1] == "step-000000007") is ends
    metadata.taken = None
    again = Notes()
    done = train("run", log=again, **settings)
    assert done.fingerprint == undisturbed.fingerprint, "who is asked is no part of what is made"
    assert not ends or any("resuming from step-000000007" in line for line in again.lines)
    theirs = {name: value for name, value in tensors_of(done.path).items() if "step-000000007" not in name}
    assert theirs.items() >= tensors_of(undisturbed.path).items()


@pytest.mark.parametrize("signalled", [False, True])
def test_what_stopped_training_is_named(train: Train, monkeypatch: pytest.MonkeyPatch, signalled: bool) -> None:
    # A notice that came after it was asked whether to save; a signal in the step of a notice that ends nothing.
    asked = StopRequests(lambda: signalled, lambda: signalled, lambda: not signalled)
    monkeypatch.setattr(
        "bertwright.train.setup.training_environment.watch_stop_requests", lambda *_: nullcontext(asked)
    )
    with pytest.raises(Interrupted, match="stopped by a signal" if signalled else "stopped by a notice that the cloud"):
        train("run")


def test_what_begins_to_answer_is_waited_for(metadata: Metadata, monkeypatch: pytest.MonkeyPatch) -> None:
    metadata.answer, notes = b"{}", Notes()
    config = AzureNoticeConfig(address=metadata.address, every=0.01)
    with watch_for_notices(config, notes):
        until(lambda: len(metadata.asked) > 5)
        assert not notes.lines, "Azure takes up to two minutes to begin"
        monkeypatch.setattr(spot, "BEGINS", 0.0)
        until(lambda: bool(notes.lines))
        metadata.answer = json.dumps({"Events": []}).encode()
        until(lambda: len(notes.lines) > 1)
    assert notes.lines[1:] == [f"train: {metadata.address} now answers whether azure reclaims this machine"]


def test_nobody_who_answers_is_said_once_and_ends_nothing(
    train: Train, metadata: Metadata, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spot, "BEGINS", 0.0)
    undisturbed, notes = train("undisturbed"), Notes()
    metadata.answer = b"{}"
    done = train("run", log=notes, spot_notice={"kind": "azure", "address": metadata.address, "every": 0.001})
    said = [line for line in notes.lines if "spot_notice" in line]
    assert len(said) == 1 and said[0].startswith(
        f"warning: train.spot_notice azure: {metadata.address} does not answer whether this machine is reclaimed (the "
        "answer has no Events). Training goes on, and the query is repeated every 0.001 s; on a machine outside"
    )
    assert tensors_of(done.path) == tensors_of(undisturbed.path)
    closed = Notes()
    with watch_for_notices(GcpNoticeConfig(address="http://127.0.0.1:1", every=0.01), closed) as notice:
        until(lambda: bool(closed.lines))
        assert not notice.is_new()
    assert "Connection refused" in closed.lines[0]


def test_the_key_is_a_name_or_a_section() -> None:
    assert TrainConfig(phases=[PHASE]).spot_notice.kind == "none"
    assert TrainConfig.model_validate({"phases": [PHASE], "spot_notice": "aws"}).spot_notice == AwsNoticeConfig()
    for wrong in ("https://who:secret@host", "http://host/path", "169.254.169.254"):
        with pytest.raises((RecipeError, ValueError)):
            AzureNoticeConfig(address=wrong)
