"""Reads preemption notices from a cloud's metadata service, using the standard library.

Azure: Scheduled Events, api-version 2020-07-01. AWS: `spot/instance-action` with an IMDSv2 token. Google:
`instance/preempted`. No response contains a secret, and nothing is sent but the request. A thread, on the first rank of
each machine, sends the queries.
"""

from __future__ import annotations

import http.client
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

from bertwright.core.distributed import rank_here
from bertwright.core.json_values import parse_json
from bertwright.core.log import Log
from bertwright.train.machine.config import AwsNoticeConfig, AzureNoticeConfig, GcpNoticeConfig

PATIENCE = 10.0
"""Timeout of a request, in seconds."""
BEGINS = 120.0
"""Seconds that Azure may take to start responding to a machine."""
_LONGEST = 2**20
"""Maximum size of a response, in bytes."""
_TAKEN = ("Preempt", "Terminate")
"""Azure events after which the machine is gone."""
# A proxy from the environment cannot reach this machine's metadata.
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))
Notices = dict[str, datetime | None]
"""Announced events, named as in log messages, with their time (UTC) if known."""
Config = AzureNoticeConfig | AwsNoticeConfig | GcpNoticeConfig


def notices(config: Config) -> Notices:
    """Return the notices currently in force for this machine.

    Raises `OSError` if there is no response, `ValueError` if the response cannot be parsed.
    """
    match config:
        case AzureNoticeConfig():
            return _of_azure(config.address)
        case AwsNoticeConfig():
            return _of_aws(config.address)
        case GcpNoticeConfig():
            return _of_google(config.address)


def _of_azure(address: str) -> Notices:
    answer = _query(f"{address}/metadata/scheduledevents?api-version=2020-07-01", {"Metadata": "true"})
    events = _member(parse_json(answer), "Events")
    found = Notices()
    # Includes events of other machines of the scale set: a training with ranks there is stopped with them, and for one
    # without, an extra checkpoint does no harm.
    for event in events if isinstance(events, list) else []:
        if (kind := _member(event, "EventType")) in _TAKEN:
            when = _member(event, "NotBefore")  # "Mon, 19 Sep 2016 18:29:47 GMT"; empty once it has begun
            moment = parsedate_to_datetime(str(when)) if when else None
            found[f"{kind} {_member(event, 'EventId')}"] = moment
    return found


def _of_aws(address: str) -> Notices:
    lifetime = {"X-aws-ec2-metadata-token-ttl-seconds": "60"}
    token = _query(f"{address}/latest/api/token", lifetime, "PUT").decode("ascii")
    try:
        answer = _query(f"{address}/latest/meta-data/spot/instance-action", {"X-aws-ec2-metadata-token": token})
    except urllib.error.HTTPError as error:
        error.close()
        if error.code == 404:  # nothing is announced
            return {}
        raise
    action = parse_json(answer)
    when = datetime.fromisoformat(str(_member(action, "time")))
    return {str(_member(action, "action")): when}


def _of_google(address: str) -> Notices:
    answer = _query(f"{address}/computeMetadata/v1/instance/preempted", {"Metadata-Flavor": "Google"})
    return {"preempted": None} if answer.strip() == b"TRUE" else {}


def seconds_left(moment: datetime) -> float:
    """Return the seconds until `moment`, which is taken as UTC if it has no time zone."""
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (moment - datetime.now(UTC)).total_seconds()


def _query(url: str, headers: Mapping[str, str], method: str = "GET") -> bytes:
    request = urllib.request.Request(url, headers=dict(headers), method=method)
    with _DIRECT.open(request, timeout=PATIENCE) as answer:
        data: bytes = answer.read(_LONGEST)
        return data


def _member(value: Any, name: str) -> Any:
    if not isinstance(value, dict) or name not in value:
        raise ValueError(f"the answer has no {name}")
    return value[name]


class Notice:
    """Notices passed from the thread to training."""

    def __init__(self, ends: bool = False) -> None:
        self._ends, self._new, self._ever = ends, threading.Event(), threading.Event()

    def is_new(self) -> bool:
        """Whether a notice has arrived since the last call."""
        if not self._new.is_set():
            return False
        self._new.clear()
        return True

    def requires_end(self) -> bool:
        """Whether a notice has arrived and training is configured to end on it."""
        return self._ends and self._ever.is_set()

    def add(self) -> None:
        """Record that a notice has arrived."""
        self._ever.set()
        self._new.set()


@contextmanager
def watch_for_notices(config: Config, log: Log) -> Iterator[Notice]:
    """Yield the notices that arrive during the block.

    Each notice, its withdrawal, and the lack of a response for longer than `BEGINS` are logged; failed queries are
    repeated.
    """
    if rank_here() != 0:
        yield Notice()
        return
    queries = _Queries(config, log)
    threading.Thread(target=queries.run, name="spot notice", daemon=True).start()
    try:
        yield queries.notice
    finally:
        # Not joined: a request without a response may be in progress.
        queries.over.set()


class _Queries:
    """The queries of one start."""

    def __init__(self, config: Config, log: Log) -> None:
        self._config, self._log = config, log
        self._standing: Notices = {}
        self._unanswered, self._answered = False, time.monotonic()
        self.notice, self.over = Notice(config.ends), threading.Event()

    def run(self) -> None:
        """Query until the block ends."""
        while not self.over.is_set():
            try:
                self._take(notices(self._config))
                self._log_answer()
            # Errors of the metadata service must not end this thread.
            except (OSError, ValueError, http.client.HTTPException) as error:
                self._warn_once(error)
            self.over.wait(self._config.every)

    def _take(self, now: Notices) -> None:
        for name in now.keys() - self._standing.keys():
            self._log.say(
                f"train: {self._config.kind} reclaims this machine{_delay(now[name])} ({name}): a checkpoint is saved "
                f"after this step, and training {'ends' if self._config.ends else 'continues as long as possible'}"
            )
            self.notice.add()
        for name in self._standing.keys() - now.keys():
            self._log.say(f"train: {self._config.kind} no longer announces that it reclaims this machine ({name})")
        self._standing = now

    def _log_answer(self) -> None:
        self._answered = time.monotonic()
        if self._unanswered:
            self._unanswered = False
            self._log.say(
                f"train: {self._config.address} now answers whether {self._config.kind} reclaims this machine"
            )

    def _warn_once(self, error: Exception) -> None:
        if not self._unanswered and time.monotonic() - self._answered > BEGINS:
            self._unanswered = True
            self._log.say(
                f"warning: train.spot_notice {self._config.kind}: {self._config.address} does not answer whether this "
                f"machine is reclaimed ({error}). Training goes on, and the query is repeated every "
                f"{self._config.every:g} s; on a machine outside this cloud, leave the key out."
            )


def _delay(moment: datetime | None) -> str:
    return "" if moment is None else f" in {max(0.0, seconds_left(moment)):.0f} s"
